"""How a worker's wall clock stands to the master's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

EXCHANGES = 5


class Sample(NamedTuple):
    """One question and answer, in wall nanoseconds: asked and heard by the master's clock, said by the
    worker's."""

    asked_ns: int
    said_ns: int
    heard_ns: int

    @property
    def round_trip_ns(self) -> int:
        return self.heard_ns - self.asked_ns

    @property
    def offset_ns(self) -> int:
        """The worker's clock minus the master's, if question and answer took equally long."""
        return self.said_ns - (self.asked_ns + self.heard_ns) // 2


@dataclass
class WorkerClock:
    """The offset of one worker's clock, from the quickest of EXCHANGES answers in a row: it is right to half
    of that round trip (NTP's rule, RFC 5905 section 8). A new series of questions replaces the one before
    when it is complete, since clocks drift."""

    best: Sample | None = None
    _series: tuple[Sample, ...] = ()

    def add(self, sample: Sample) -> bool:
        """Whether the series is complete. An answer that came before its question (the master's own clock
        was set back meanwhile) counts for nothing."""
        if sample.round_trip_ns >= 0:
            self._series = (*self._series, sample)
        if len(self._series) < EXCHANGES:
            return False
        self.best = min(self._series, key=lambda s: s.round_trip_ns)
        self._series = ()
        return True

    @property
    def offset_ns(self) -> int:
        """What to take from the worker's times; 0 where the difference is within what can be told, which is
        half of the round trip."""
        if self.best is None or abs(self.best.offset_ns) <= self.best.round_trip_ns // 2:
            return 0
        return self.best.offset_ns
