"""The two C programs, built when their source is newer, and truthd as a context manager."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).resolve().parent
BUILD = HERE / "build"

# Server and client have a core each, so that neither can slow the other down.
SERVER_CORE, CLIENT_CORE = 0, 1


class BenchError(Exception):
    """What keeps the benchmark from running, in one sentence."""


def build(name: str) -> Path:
    """The compiled program, made from benchmarks/NAME.c if need be."""
    source, program = HERE / f"{name}.c", BUILD / name
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return program
    compiler = os.environ.get("CC") or next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        raise BenchError("the benchmarks need a C compiler: install gcc or clang, or name one in CC")
    BUILD.mkdir(exist_ok=True)
    done = subprocess.run([compiler, "-O2", "-o", str(program), str(source)], capture_output=True, text=True)
    if done.returncode:
        raise BenchError(f"{compiler} could not build {source.name}: {done.stderr.strip()[:400]}")
    return program


@cache
def cores() -> tuple[int, int]:
    """The two cores to use, of those that this process had at first: (server, client). BenchError where it
    may use one core only."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(allowed) < 2:
        raise BenchError(
            "the benchmarks need Linux and two CPU cores, one for the server and one for the client"
        )
    return allowed[SERVER_CORE], allowed[CLIENT_CORE]


@dataclass(frozen=True)
class Timing:
    """What truthd is told: milliseconds. `role_ms` None: no role chunk of its own."""

    ttft_ms: float = 200.0
    itl_ms: float = 20.0
    jitter_pct: float = 0.0
    role_ms: float | None = None

    def arguments(self) -> list[str]:
        flags = ["--ttft-ms", str(self.ttft_ms), "--itl-ms", str(self.itl_ms)]
        flags += ["--jitter-pct", str(self.jitter_pct)]
        return flags if self.role_ms is None else [*flags, "--role-ms", str(self.role_ms)]


class Truth:
    """A truthd of its own, pinned to the server's core.

    After the block, `streams` holds what it really sent: {response number: {"recv": ns, "first": ns,
    "t": [us, ...], ...}}; truthd.c describes it.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.streams: dict[int, dict[str, object]] = {}

    def __enter__(self) -> Truth:
        program, core = build("truthd"), cores()[0]
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = int(s.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = tempfile.TemporaryDirectory(prefix="truthd-")
        self._log = Path(self._folder.name) / "streams.jsonl"
        self._process = subprocess.Popen(
            [str(program), "--port", str(self.port), *self._timing.arguments(), "--log", str(self._log)],
            stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        limit = time.monotonic() + 10
        while True:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            if self._process.poll() is not None or time.monotonic() > limit:
                self.__exit__(None, None, None)
                raise BenchError("truthd did not start")
            time.sleep(0.02)

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate()
        if self._log.exists():
            for line in self._log.open():
                stream = json.loads(line)
                self.streams[stream["id"]] = stream
        self._folder.cleanup()
