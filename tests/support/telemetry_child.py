"""The telemetry process of a run, with NVML replayed from a recording."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FAKE_NVML = ROOT / "tests/support/fakenvml"


def environment(**knobs: object) -> dict[str, str]:
    """The environment of a process that finds the fake NVML; `gpus=2` sets FAKENVML_GPUS and so on."""
    path = [str(FAKE_NVML), str(ROOT), os.environ.get("PYTHONPATH", "")]
    set_knobs = {f"FAKENVML_{name.upper()}": str(value) for name, value in knobs.items()}
    return {**os.environ, **set_knobs, "PYTHONPATH": os.pathsep.join(filter(None, path))}


class TelemetryChild:
    """Started, and its first line read: `.ready`. A context manager, ended by `stop`."""

    def __init__(
        self,
        run_dir: Path,
        telemetry: dict[str, Any] | None = None,
        engines: list[dict[str, Any]] | None = None,
        env: dict[str, str] | None = None,
        **knobs: object,
    ) -> None:
        self.run_dir = run_dir
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loadgen.telemetry.child", str(run_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(**knobs), **(env or {})},
            cwd=ROOT,
        )
        spec = {"engine_metrics": "off", "interval_s": 0.1, **(telemetry or {})}
        self.tell({"telemetry": spec, "engines": engines or [], "host": "gpuhost"})
        self.ready = self.read()

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1].decode()
        return json.loads(line)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.tell(message)
        return self.read()

    def rows(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The whole lines of gpu.jsonl as it is now."""
        path = self.run_dir / "gpu.jsonl"
        if not path.exists():
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
        return [row for row in map(json.loads, lines) if kind in (None, row["kind"])]

    def stop(self, timeout_s: float = 30.0) -> int:
        """End it as a run does; its exit code. What it wrote to stderr is in `.stderr` then."""
        _, err = self.process.communicate(b'{"cmd": "stop"}\n', timeout=timeout_s)
        self.stderr = err.decode()
        return self.process.returncode

    def __enter__(self) -> TelemetryChild:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe and not pipe.closed:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self.process.wait()
