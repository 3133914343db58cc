"""Locust's own command on one of our locustfiles, as a person would start it, and what it left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class LocustRun:
    """A started process. `wait` for its end, then look at `code`, `err` and the records of the newest run."""

    def __init__(self, command: list[str], runs_dir: Path, env: dict[str, str] | None = None) -> None:
        self.runs_dir = runs_dir
        self.out = self.err = ""
        self.code: int | None = None
        self._logs = [runs_dir.parent / f"{runs_dir.name}.{name}" for name in ("out", "err")]
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("LOCUST_", "LOADGEN_"))}
        with open(self._logs[0], "wb") as out, open(self._logs[1], "wb") as err:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                cwd=runs_dir.parent,
                env={**clean, "PYTHONPATH": str(ROOT), **(env or {})},
                start_new_session=True,
            )

    def wait(self, timeout_s: float = 90) -> LocustRun:
        try:
            self.code = self.process.wait(timeout_s)
        finally:
            self.stop()
        self.out, self.err = (log.read_text(errors="replace") for log in self._logs)
        return self

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for(self, what: Callable[[LocustRun], Any], timeout_s: float = 60) -> Any:
        """Until `what` holds; an assertion with the process's own words if it never does."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if found := what(self):
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"never happened; stderr: {self._logs[1].read_text(errors='replace')[-3000:]}")

    def printed(self) -> str:
        """Its standard output so far."""
        return self._logs[0].read_text(errors="replace")

    # What it left behind.

    @property
    def dir(self) -> Path:
        return self.runs_dir / "latest"

    def _lines(self, name: str) -> list[dict[str, Any]]:
        file = self.dir / name
        if not file.exists():
            return []
        return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]

    @property
    def records(self) -> list[dict[str, Any]]:
        return self._lines("requests.jsonl")

    @property
    def events(self) -> list[dict[str, Any]]:
        return self._lines("events.jsonl")

    @property
    def manifest(self) -> dict[str, Any]:
        """Empty while the run directory is being made."""
        file = self.dir / "manifest.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def measured(self) -> list[dict[str, Any]]:
        return [r for r in self.records if r["phase"] == "measure"]

    def count(self, *names: str) -> Counter[Any]:
        """How often each combination of these fields occurs among all records."""
        rows = ([r.get(n) for n in names] for r in self.records)
        return Counter(r[0] if len(names) == 1 else tuple(r) for r in rows)

    def turns(self) -> list[tuple[str, bool]]:
        return [(e["engine"], e["complete"]) for e in self.events if e["kind"] == "turn_end"]


def start_locust(
    runs_dir: Path, *flags: str, scenario: str = "concurrency", env: dict[str, str] | None = None
) -> LocustRun:
    if "--processes" in flags:  # Locust's own port may be taken, by another run of these tests for instance
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        env = {"LOCUST_MASTER_BIND_PORT": port, "LOCUST_MASTER_NODE_PORT": port, **(env or {})}
    file = ROOT / "locustfiles" / f"{scenario}.py"
    command = [sys.executable, "-m", "locust", "-f", str(file), "--runs-dir", str(runs_dir), *flags]
    return LocustRun(command, runs_dir, env)


def run_locust(runs_dir: Path, *flags: str, **options: Any) -> LocustRun:
    return start_locust(runs_dir, "--headless", *flags, **options).wait()


def start_loadgen(runs_dir: Path, *args: str, env: dict[str, str] | None = None) -> LocustRun:
    return LocustRun([sys.executable, "-m", "loadgen.cli", *args], runs_dir, env)


def run_loadgen(runs_dir: Path, *args: str, env: dict[str, str] | None = None) -> LocustRun:
    return start_loadgen(runs_dir, *args, env=env).wait()
