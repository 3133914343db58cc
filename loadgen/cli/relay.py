"""Relay: children one after the other, signals passed on to whichever runs."""

from __future__ import annotations

import signal
import subprocess
from typing import Any


class Relay:
    """Runs children and passes signals on. A terminal has sent Ctrl-C to the child as well, which takes two
    that arrive together for one."""

    def __init__(self) -> None:
        self.interrupted = False
        self._child: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._pass_on)

    def run(self, command: list[str], env: dict[str, str], stdout: int | None) -> int:
        self._child = subprocess.Popen(command, env=env, stdout=stdout)
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: Any) -> None:
        self.interrupted = True
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)
