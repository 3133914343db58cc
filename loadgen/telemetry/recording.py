"""The run directory of `loadgen telemetry`: gpu.jsonl and a manifest, so that `loadgen ship` works on it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadgen.config import Settings
from loadgen.store import EventsWriter, Manifest, RunDir
from loadgen.telemetry.output import RowFile

SCENARIO = "telemetry"
SHIPPER = "loadgen.sinks.shipper"


class Recording:
    """Begun by `start`, ended by `finish`. Raises StoreError where the directory cannot be made."""

    def __init__(self, runs_dir: Path, settings: Settings) -> None:
        self.run = RunDir.create(runs_dir, SCENARIO, latest=False)
        self._file = RowFile(self.run.path / "gpu.jsonl")
        self._manifest = Manifest.new(self.run.name, settings)
        self._manifest.write(self.run.manifest_path)
        self._events = EventsWriter(self.run.events_path)

    def start(self, facts: Sequence[Mapping[str, Any]]) -> None:
        self._manifest.extra["gpus"] = [dict(f) for f in facts]
        self._manifest.write(self.run.manifest_path)
        self._events.append("run_start")

    def write(self, row: Mapping[str, Any]) -> None:
        self._file.write(row)

    def finish(self) -> str | None:
        """What went wrong while writing, if anything did."""
        self._events.append("run_end")
        self._events.close()
        problem = self._file.close()
        if problem:
            self._manifest.note(problem)
        self._manifest.finish(self.run.manifest_path)
        return problem


class Delivery:
    """The shipper at work on a directory, in a process of its own; `status` is the last thing it said."""

    def __init__(self, run: RunDir, settings: Settings) -> None:
        self.status: dict[str, Any] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", SHIPPER, str(run.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is ours, and this one ends when we say so
        )
        self._say(json.dumps({"influxdb": settings.influxdb.model_dump(mode="json")}))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish(self, timeout_s: float) -> bool:
        """Let it deliver the rest; whether all is delivered. It goes on by itself if that takes longer."""
        self._say("end")
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout_s)
            self._reader.join(5.0)
            return code == 0
        return False

    def _say(self, line: str) -> None:
        assert self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    self.status = row
