"""Exclusive residency: one engine is loaded at a time, with the commands of loadgen.toml."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

import gevent

from loadgen.config import EngineSpec
from loadgen.engines import EngineError, OpenAIEngine

log = logging.getLogger("loadgen")

POLL_S = 0.5
STOP_S = 30.0
_TAIL = 300  # characters of a start command's last words


class Residency:
    """Keeps at most one engine running. `folder` receives what the commands print, a file an engine.

    The commands are a person's own, from loadgen.toml, and are run by the shell.
    """

    def __init__(self, folder: Path, ready_timeout_s: float) -> None:
        self._folder = folder
        self._ready_timeout_s = ready_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._engine: OpenAIEngine | None = None

    def resident(self, engine: OpenAIEngine) -> bool:
        return self._engine is engine

    def switch_to(self, engine: OpenAIEngine) -> bool:
        """Make `engine` the one that runs; False if it was already. Raises EngineError, also when an engine
        runs that should not: two that share the memory would be measured as if each had it alone."""
        if self.resident(engine):
            return False
        before = self._engine
        self.stop()
        if before is not None:
            self._wait_until_gone(before)
        spec = engine.spec
        if engine.health().ready:
            raise EngineError(
                f"engine {engine.name}: a server answers at {spec.url} before its start command was run: "
                "stop it, since with exclusive residency each engine is started for its turns only",
                "config",
            )
        assert spec.start is not None
        log.info("engine %s: starting it: %s", engine.name, spec.start)
        with open(self._output(spec), "ab") as out:
            self._process = _shell(spec.start, out.fileno())
        self._engine = engine
        self._wait_until_ready(engine)
        return True

    def stop(self) -> None:
        """Stop the engine that runs, if any: its stop command, then what is left of its start command."""
        engine, process = self._engine, self._process
        self._engine = self._process = None
        if engine is None:
            return
        log.info("engine %s: stopping it", engine.name)
        if engine.spec.stop:
            with open(self._output(engine.spec), "ab") as out:
                command = _shell(engine.spec.stop, out.fileno())
            if _wait(command, STOP_S) is None:
                _signal(command, signal.SIGKILL)
            elif command.returncode:
                log.warning("engine %s: its stop command ended with %d", engine.name, command.returncode)
        if process is not None:
            _signal(process, signal.SIGTERM)
            if _wait(process, STOP_S) is None:
                _signal(process, signal.SIGKILL)
                process.wait()

    def _wait_until_gone(self, engine: OpenAIEngine) -> None:
        deadline = time.monotonic() + STOP_S
        while engine.health().ready:
            if time.monotonic() > deadline:
                raise EngineError(
                    f"engine {engine.name}: it still answers at {engine.spec.url} {STOP_S:g} s after it was "
                    f"stopped: give it a stop command in [engines.{engine.name}] that ends it",
                    "config",
                )
            gevent.sleep(POLL_S)

    def _wait_until_ready(self, engine: OpenAIEngine) -> None:
        spec, process = engine.spec, self._process
        assert process is not None
        deadline = time.monotonic() + self._ready_timeout_s
        while not self._ready(engine):
            code = process.poll()
            if code:  # a start command that ends with 0 has left a server in the background
                raise EngineError(
                    f"engine {engine.name}: its start command ended with {code} ({self._last_words(spec)})",
                    "unreachable",
                )
            if time.monotonic() > deadline:
                raise EngineError(
                    f"engine {engine.name}: not ready {self._ready_timeout_s:g} s after its start command "
                    f"({self._last_words(spec)}); ready_timeout_s in loadgen.toml allows more",
                    "loading",
                )
            gevent.sleep(POLL_S)

    def _ready(self, engine: OpenAIEngine) -> bool:
        if engine.spec.ready is None:
            return engine.health().ready
        with open(os.devnull, "ab") as out:
            command = _shell(engine.spec.ready, out.fileno())
        if _wait(command, 10 * POLL_S) is None:
            _signal(command, signal.SIGKILL)
            command.wait()
        return command.returncode == 0

    def _output(self, spec: EngineSpec) -> Path:
        return self._folder / f"engine-{spec.name}.log"

    def _last_words(self, spec: EngineSpec) -> str:
        path = self._output(spec)
        text = path.read_bytes()[-_TAIL:].decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f"{lines[-1]}; all of it in {path}" if lines else f"it printed nothing; {path}"


def _shell(command: str, out: int) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C is for us, and a stop must reach the whole tree that the shell started.
    return subprocess.Popen(
        command, shell=True, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
    )


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while (code := process.poll()) is None and time.monotonic() < deadline:
        gevent.sleep(0.05)
    return code


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
