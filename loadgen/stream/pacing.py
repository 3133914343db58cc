"""How long the reader lets segments gather before a sweep. Pure: times come in as numbers."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_NS = 5_000_000
_SHORTEST_NS = 500_000
_UNKNOWN_GAP_NS = 4_000_000
# Below this rate reading each segment at once costs under a tenth of a core: nothing is gained by waiting.
_LAZY_ABOVE_PER_S = 2_000.0
_WINDOW_NS = 100_000_000


class SweepPacer:
    """`delay_ns` for the next sweep: 0 under light load, else a quarter of the shortest mean gap between the
    events of a stream (so that segments of one stream do not merge in the kernel), at most 5 ms."""

    __slots__ = ("_count", "_gap_ns", "_since_ns", "delay_ns")

    def __init__(self) -> None:
        self.delay_ns = 0
        self._gap_ns = float(_UNKNOWN_GAP_NS)
        self._since_ns = 0
        self._count = 0

    def swept(self, now_ns: int, reads: int) -> None:
        """One sweep was made at `now_ns` and found `reads` streams ready."""
        self._count += reads
        elapsed = now_ns - self._since_ns
        if elapsed < _WINDOW_NS and not (self._count >= 64 and elapsed > 0 and self.delay_ns == 0):
            return
        rate = self._count / elapsed * 1e9 if elapsed > 0 else 0.0
        self._since_ns = now_ns
        self._count = 0
        delay = min(_LONGEST_NS, int(self._gap_ns / 4))
        self.delay_ns = delay if rate > _LAZY_ABOVE_PER_S and delay >= _SHORTEST_NS else 0
        self._gap_ns = min(self._gap_ns * 1.1, 1e9)  # forget slowly

    def saw_gaps(self, text_ns: Sequence[int], start: int) -> None:
        """Arrival times of a stream's text events; those from index `start` on are new."""
        count = len(text_ns) - 1 - start
        if count >= 8:
            mean = (text_ns[-1] - text_ns[start]) / count
            if mean < self._gap_ns or self._gap_ns == _UNKNOWN_GAP_NS:
                self._gap_ns = max(mean, 1.0)
