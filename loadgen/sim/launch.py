"""Starting a simulated engine in a process of its own, for tests and demonstrations."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import loadgen

_FLAGS = frozenset({"no_prefix_cache"})


class SimProcess:
    """A simulated engine in a process of its own.

    >>> with SimProcess("vllm", preset="vllm-fast", fault=["ping"]) as sim:     # doctest: +SKIP
    ...     requests.get(sim.url + "/health")

    Keywords are the flags of `loadgen sim` with underscores (a list is a repeated flag). `port` 0 takes any
    free port; `url` and `port` tell the real one. The process ends with the `with` block, with `stop()`, or
    with this process; with `own_session`, the terminal's Ctrl-C does not reach it before. Raises
    RuntimeError with the server's own words when it does not come up.
    """

    def __init__(
        self,
        kind: str,
        *,
        port: int = 0,
        start_timeout_s: float = 30.0,
        own_session: bool = False,
        **options: Any,
    ) -> None:
        self.kind = kind
        self._own_log: str | None = None
        if "log" not in options:
            fd, self._own_log = tempfile.mkstemp(prefix="loadgen-sim-", suffix=".jsonl")
            os.close(fd)
            options["log"] = self._own_log
        self._log = Path(options["log"])
        self._records: list[dict[str, Any]] = []
        command = [sys.executable, "-m", "loadgen.sim", "--kind", kind, "--port", str(port)]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            if name in _FLAGS:
                command += [flag] if value else []
                continue
            for one in value if isinstance(value, (list, tuple)) else [value]:
                command.append(f"{flag}={one}")
        root = str(Path(loadgen.__file__).parent.parent)
        path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=own_session,
        )
        atexit.register(self.stop)
        try:
            row = self._wait_ready(start_timeout_s)
        except BaseException:
            self.stop()
            raise
        self.url: str = row["url"]
        self.port: int = row["port"]
        self.model: str = row["model"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def _wait_ready(self, timeout_s: float) -> dict[str, Any]:
        out = self._process.stdout
        assert out is not None
        if not select.select([out], [], [], timeout_s)[0]:
            raise RuntimeError(f"the simulated {self.kind} said nothing for {timeout_s:g} s")
        line = out.readline()
        if not line:
            _, err = self._process.communicate()
            raise RuntimeError(err.decode(errors="replace").strip() or f"the simulated {self.kind} ended")
        row: dict[str, Any] = json.loads(line)["ready"][0]
        return row

    def log_records(self) -> list[dict[str, Any]]:
        """The true times so far (all of them after `stop`), see loadgen/sim/truthlog.py."""
        if not self._log.exists():
            return self._records
        lines = self._log.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines[:-1]]

    def stop(self) -> None:
        """End the process (it finishes its log first). Harmless when it has ended."""
        atexit.unregister(self.stop)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._own_log is not None and self._log.exists():
            self._records = self.log_records()
            self._log.unlink()

    def __enter__(self) -> SimProcess:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()
