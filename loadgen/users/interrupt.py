"""Ctrl-C: once to finish what is in flight, twice to cut it."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.runners import STATE_INIT

import logging
import os
import signal
import sys
import time
from typing import Any

import gevent

from loadgen import exitcodes
from loadgen.plain import plural
from loadgen.users.session import STATE_RUNS, Session

log = logging.getLogger("loadgen")

SAME_KEYSTROKE_S = 0.5


class Interrupt:
    """Handles SIGINT in place of Locust, which would cut all streams and write the exit code too early.

    A terminal sends the signal to the whole process group, and `loadgen run reference` passes it on: two
    that arrive together are one.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._presses = 0
        self._last_s = 0.0

    def install(self) -> None:
        gevent.signal_handler(signal.SIGINT, self.pressed)

    def pressed(self) -> None:
        now = time.monotonic()
        if self._presses and now - self._last_s < SAME_KEYSTROKE_S:
            return
        self._last_s = now
        self._presses += 1
        runner = self._session.environment.runner
        if self._presses == 1:
            self._first(runner)
        elif self._presses == 2:
            cut = plural(self._session.crew.in_flight, "request")
            log.warning("cutting %s, recorded as cancelled", cut)
            self._session.cut()
        else:
            os._exit(exitcodes.INTERRUPTED)

    def _first(self, runner: Any) -> None:
        if runner.state in STATE_RUNS:
            log.warning(
                "stopping: %s in flight may finish (Ctrl-C again cuts them)",
                plural(self._session.crew.in_flight, "request"),
            )
        web_ui = self._session.environment.web_ui
        runner.quit()
        if web_ui is not None:
            web_ui.stop()
        elif runner.state == STATE_INIT:  # a master that waits for workers would wait on
            self._session.quitting()
            sys.exit(self._session.environment.process_exit_code)
