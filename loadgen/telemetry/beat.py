"""A beat on a schedule: sleeping the interval after each piece of work would drift by what the work takes."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable


def next_beat(start: float, interval: float, now: float) -> tuple[int, float]:
    """The number and time of the first beat after `now`, of those at start, start + interval, ...

    >>> next_beat(100.0, 1.0, 103.25)
    (4, 104.0)
    """
    n = max(0, int((now - start) // interval) + 1)
    return n, start + n * interval


class Beat(threading.Thread):
    """Calls `work` at every beat until stopped. Work that takes longer than a beat skips the beats it has
    missed (`missed` counts them) and never bunches up.

    Work that raises is told on standard error, once, and done again at the next beat.

    `busy_since` is the monotonic time at which the work now running began, None between two. A stuck call
    cannot be ended, so the thread is a daemon: the process can end without it.
    """

    def __init__(
        self,
        name: str,
        interval_s: float,
        work: Callable[[], None],
        *,
        start_at: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.interval_s = interval_s
        self.missed = 0
        self.busy_since: float | None = None
        self.failure = ""
        self._work = work
        self._clock = clock
        self._start_at = clock() if start_at is None else start_at
        self._stopped = threading.Event()

    def run(self) -> None:
        due, at = 0, self._start_at
        while not self._stopped.wait(max(0.0, at - self._clock())):
            self.busy_since = self._clock()
            try:
                self._work()
            except Exception as e:
                self._failed(e)
            self.busy_since = None
            n, at = next_beat(self._start_at, self.interval_s, self._clock())
            self.missed += max(0, n - due - 1)
            due = n

    def _failed(self, error: Exception) -> None:
        """One beat that went wrong is no reason to leave out all that follow."""
        if (said := f"{type(error).__name__}: {error}") != self.failure:
            self.failure = said
            traceback.print_exception(error)

    def ask_to_stop(self) -> None:
        self._stopped.set()

    def join_until(self, deadline: float) -> bool:
        """Whether the thread has ended by `deadline` (monotonic seconds)."""
        if self.is_alive():
            self.join(max(0.0, deadline - self._clock()))
        return not self.is_alive()
