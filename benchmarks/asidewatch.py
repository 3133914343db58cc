"""What the sidecars of a run cost, seen from outside; aside/sitecustomize.py tells which they are."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

INTERVAL_S = 0.2


class AsideWatch:
    """`seen` is {name: {"cpu_s": user and system time, "rss_mb": peak}}, as last seen before each ended."""

    def __init__(self, log: Path) -> None:
        self.seen: dict[str, dict[str, float]] = {}
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            if not self._log.exists():
                continue
            for line in self._log.read_text().splitlines():
                row = json.loads(line)
                if found := cost(row["pid"]):
                    self.seen[row["name"]] = found


def cost(pid: int) -> dict[str, float] | None:
    """User and system time so far and peak memory of a process; None if it has gone."""
    try:
        # The name in parentheses may hold anything, so the fields are counted from behind it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")), None)
    if peak is None:  # it has ended, and nobody has asked for its exit code yet
        return None
    ticks = int(fields[11]) + int(fields[12])
    return {"cpu_s": ticks / os.sysconf("SC_CLK_TCK"), "rss_mb": int(peak) / 1024}
