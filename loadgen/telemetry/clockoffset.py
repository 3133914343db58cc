"""How far another machine's wall clock is ahead of ours, from questions and answers. Pure."""

from __future__ import annotations

from collections import deque

KEEP = 32
STEP_NS = 50_000_000


class ClockOffset:
    """The offset by the midpoint of the quickest of the last few exchanges (as in NTP, RFC 5905 section 8).

    An answer that says their time was read somewhere between our question and our receiving it, so half the
    round trip bounds the error. A clock that was set in between makes older exchanges worthless.
    """

    def __init__(self, keep: int = KEEP) -> None:
        self._seen: deque[tuple[int, int]] = deque(maxlen=keep)  # (half round trip, offset)

    def add(self, sent_ns: int, received_ns: int, theirs_ns: int) -> bool:
        """One exchange; whether it proves that one of the clocks was set since the ones before it."""
        half = max(0, received_ns - sent_ns) // 2
        offset = theirs_ns - sent_ns - half
        stepped = any(abs(offset - o) > half + h + STEP_NS for h, o in self._seen)
        if stepped:
            self._seen.clear()
        self._seen.append((half, offset))
        return stepped

    @property
    def offset_ns(self) -> int:
        """Their clock minus ours; 0 as long as nothing is known."""
        return min(self._seen)[1] if self._seen else 0

    @property
    def error_ns(self) -> int:
        return min(self._seen)[0] if self._seen else 0

    @property
    def matters(self) -> bool:
        """Whether their clock is off by more than the exchange can tell, and enough to move a sample."""
        return abs(self.offset_ns) > max(self.error_ns, STEP_NS)

    def ours(self, theirs_ns: int) -> int:
        """Their time in ours."""
        return theirs_ns - self.offset_ns
