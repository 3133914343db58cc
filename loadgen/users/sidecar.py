"""Sidecar: a process beside the generator, told what to do by lines of JSON.

It gets its orders on standard input and answers on standard output. Its input ends when the generator does,
however it does, so no sidecar outlives its run for long.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gevent
import orjson

log = logging.getLogger("loadgen")

KILL_S = 5.0
_TAIL = 300  # characters of its last words


class Sidecar:
    """Runs `python -m MODULE RUN_DIR`. `order` is its first line; `on_line` is called with each object it
    prints. What it prints on standard error is in `log_path`, which is removed if there is nothing in it.
    Never raises.
    """

    def __init__(
        self,
        name: str,
        module: str,
        run_dir: Path,
        order: Mapping[str, Any],
        on_line: Callable[[dict[str, Any]], None],
    ) -> None:
        self.name = name
        self.log_path = run_dir / f"{name}.log"
        self._on_line = on_line
        self._process: Any = None
        self._greenlet: gevent.Greenlet | None = None
        try:
            with open(self.log_path, "ab") as errors:
                # A session of its own: Ctrl-C is for the generator, which ends its sidecars in order.
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module, str(run_dir)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors.fileno(),
                    start_new_session=True,
                )
        except OSError as e:
            log.warning("%s cannot be started: %s", name, e.strerror or e)
            return
        self._greenlet = gevent.spawn(self._read)
        self.tell(order)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code, once it has one."""
        return None if self._process is None else self._process.poll()

    def tell(self, order: Mapping[str, Any]) -> bool:
        """Send one line; whether that was possible."""
        if self._process is None:
            return False
        try:
            self._process.stdin.write(orjson.dumps(order, default=str) + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def end_input(self) -> None:
        """There is nothing more to say: it finishes what it has to and leaves."""
        if self._process is not None:
            with contextlib.suppress(OSError, ValueError):
                self._process.stdin.close()

    def wait(self, seconds: float) -> bool:
        """Wait until it has gone, and all that it said has been heard; whether it has."""
        if self._greenlet is None:
            return True
        self._greenlet.join(seconds)
        return bool(self._greenlet.ready())

    def stop(self, seconds: float = KILL_S) -> None:
        """End it: it gets `seconds` to leave by itself."""
        self.end_input()
        if not self.wait(seconds) and self.running:
            log.warning("%s does not end, it is killed", self.name)
            self._process.kill()
            self.wait(KILL_S)
        self._tidy()

    def last_words(self) -> str:
        """The end of what it printed on standard error, on one line."""
        try:
            text = self.log_path.read_bytes()[-_TAIL:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            if isinstance(row, dict):
                try:
                    self._on_line(row)
                except Exception:
                    log.exception("%s said what could not be used", self.name)
        self._process.wait()

    def _tidy(self) -> None:
        with contextlib.suppress(OSError):
            if not self.log_path.stat().st_size:
                self.log_path.unlink()
