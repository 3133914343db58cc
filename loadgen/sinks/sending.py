"""Sender: lines go to InfluxDB, however long that takes, and refused ones are found by halving."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from threading import Event

from loadgen.sinks.influxdb import TIMEOUT_S, InfluxWriter, Refusal, WriteError

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 15.0
# How long a database may be silent when the run is over and somebody waits for the end.
GIVE_UP_S = 10.0
ENDING_TIMEOUT_S = 5.0
SMALLEST = 100
NO_LIMIT = 1 << 30
CHECK = "loadgen_check"


class GaveUp(Exception):
    """The run is over and the database does not answer: the text says what it said last."""


class Sender:
    """`send` returns when every line is stored or known to be refused.

    While the database is away it tries again for ever, with waits that grow to `LONGEST_WAIT_S`; once
    `ending` is set, for `GIVE_UP_S` after the database stopped answering.
    """

    def __init__(
        self,
        writer: InfluxWriter,
        ending: Event,
        tell: Callable[[str, str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._writer = writer
        self._ending = ending
        self._tell = tell
        self._clock = clock
        self._sleep = sleep
        self._accepted = False
        self._silent_since: float | None = None
        self._limit = NO_LIMIT  # lines a request; smaller for a database that is too slow for more

    def send(self, lines: Sequence[str]) -> list[tuple[int, str]]:
        """(index, reason) of each line that was refused, in order. Raises WriteError of the kind STOP, and
        GaveUp."""
        refused: list[tuple[int, str]] = []
        todo = [(0, len(lines))]
        while todo:
            low, high = todo.pop()
            n = high - low
            if n == 0:
                continue
            if n > self._limit:
                todo += [(low + self._limit, high), (low, low + self._limit)]
                continue
            try:
                self._write(lines[low:high])
                self._accepted = True
                self._limit = min(self._limit + self._limit // 10, NO_LIMIT)
            except WriteError as e:
                if e.refusal is Refusal.STOP:
                    raise
                if e.refusal is Refusal.RETRY:
                    self._limit = max(SMALLEST, n // 2)
                    todo.append((low, high))
                elif n == 1 or e.dropped == n:
                    self._make_sure(e, n)
                    refused += [(i, str(e)) for i in range(low, high)]
                else:
                    middle = low + n // 2
                    todo += [(middle, high), (low, middle)]
        return refused

    def _write(self, lines: Sequence[str]) -> None:
        """Until it is stored or refused; raises RETRY only where it may be too much to be stored in time."""
        delay = FIRST_WAIT_S
        while True:
            ending = self._ending.is_set()
            began = self._clock()
            try:
                self._writer.write(lines, ENDING_TIMEOUT_S if ending else TIMEOUT_S)
            except WriteError as e:
                if e.refusal is not Refusal.RETRY:
                    self._silent_since = None
                    raise
                if self._silent_since is None:
                    self._silent_since = began
                if ending and self._clock() - self._silent_since >= GIVE_UP_S:
                    raise GaveUp(str(e)) from None
                self._tell("waiting", str(e))
                self._rest(max(delay * random.uniform(0.5, 1.0), min(e.retry_after_s or 0, LONGEST_WAIT_S)))
                delay = min(delay * 2, LONGEST_WAIT_S)
                if e.timed_out and len(lines) > SMALLEST:
                    raise
            else:
                self._silent_since = None
                self._tell("delivering", "")
                return

    def _rest(self, seconds: float) -> None:
        """A wait that the end of the run cuts short; after that, one that leaves the database some time."""
        if self._ending.is_set():
            self._sleep(min(seconds, 1.0))
        else:
            self._ending.wait(seconds)

    def _make_sure(self, error: WriteError, n: int) -> None:
        """That these lines are to blame. A server that takes nothing at all is the wrong one, and a bucket
        that keeps nothing so old wants a longer retention: no reasons to bury a whole run.

        Raises WriteError of the kind STOP.
        """
        spec = self._writer.spec
        if error.too_old and n > 1:
            why = f"bucket {spec.bucket!r} keeps no points as old as this run's: give it a longer retention"
            raise WriteError(Refusal.STOP, f"{why} ({error})") from None
        if self._accepted:
            return
        try:
            self._write([f"{CHECK} ok=1 {time.time_ns()}"])
        except WriteError as e:
            if e.refusal is Refusal.SPLIT:
                why = f"InfluxDB at {spec.url} takes no line at all: {error}"
                raise WriteError(Refusal.STOP, why) from None
            raise
        self._accepted = True
