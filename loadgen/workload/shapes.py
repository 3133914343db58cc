"""Shapes: how many users there are while a turn lasts.

    steps:1,2,4,8@30s     each number of users for 30 s
    ramp:1-64@10m         from 1 to 64, each number equally long
    spike:4-64@1m/10s     4 for a minute, 64 for 10 s, 4 for another minute
    knee:1-256@20s        doubled every 20 s until throughput stops rising, then the knee is searched
    4@1m,4-64@5m,64@2m    parts one after the other: a number of users, or from one to another
    hand                  as many as somebody asks for in the web page, until it is stopped

Of steps, ramp, spike and knee the name alone will do: the users are then those of the run, and the time its
length of a level. Times are seconds, or end in s, m or h.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.sweep.plan import doubling

HAND, STEPS, RAMP, SPIKE, KNEE, PARTS, OWN = "hand", "steps", "ramp", "spike", "knee", "parts", "own"
NAMED = (STEPS, RAMP, SPIKE, KNEE)
MOST_USERS = 100_000
MOST_PARTS = 1000
LONGEST_S = 7 * 86_400.0
SHORTEST_S = 1.0

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smh]?)", re.ASCII)
_USERS = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Segment:
    """So many seconds from `first` users to `last`; both are the same on a level."""

    seconds: float
    first: int
    last: int

    def users_at(self, t_s: float) -> int:
        """Every number of users on the way lasts equally long.

        >>> [Segment(4.0, 1, 4).users_at(t) for t in (0.0, 0.9, 1.0, 3.9, 4.0)]
        [1, 1, 2, 4, 4]
        """
        way = abs(self.last - self.first)
        done = min(way, int((way + 1) * t_s / self.seconds))
        return self.first + (done if self.last >= self.first else -done)

    @property
    def title(self) -> str:
        if self.first == self.last:
            return f"{self.first} user{'' if self.first == 1 else 's'}"
        return f"{self.first} to {self.last} users"


@dataclass(frozen=True, slots=True)
class Shape:
    """`segments` are none of a shape that is not known beforehand: by HAND, a search for the KNEE between
    `first` and `peak` users, a person's OWN LoadTestShape. `level_s` is a level's length in seconds."""

    kind: str
    segments: tuple[Segment, ...]
    first: int
    peak: int
    level_s: float

    @property
    def seconds(self) -> float | None:
        """How long it lasts, None if that is not known."""
        return sum(s.seconds for s in self.segments) if self.segments else None

    def segment_at(self, t_s: float) -> tuple[Segment, float] | None:
        """The segment of this moment, and how far it is; None when the shape is over."""
        for segment in self.segments:
            if t_s < segment.seconds:
                return segment, t_s
            t_s -= segment.seconds
        return None

    def users_at(self, t_s: float) -> int | None:
        """Users at this many seconds after the start; None when the shape is over."""
        found = self.segment_at(t_s)
        return None if found is None else found[0].users_at(found[1])


def parse_shape(text: str, users: int = 16, level_s: float = 30.0) -> Shape:
    """Raises ValueError in one sentence. `users` and `level_s` (seconds) are those of a bare name.

    >>> parse_shape("steps:1,8@10s").segments
    (Segment(seconds=10.0, first=1, last=1), Segment(seconds=10.0, first=8, last=8))
    """
    name, colon, rest = (part.strip() for part in text.strip().partition(":"))
    if name in (HAND, OWN) and not colon:
        return Shape(name, (), users if name == HAND else 1, users, level_s)
    if name not in NAMED:
        if colon or not re.match(r"\d", name):
            raise ValueError(
                f"{text[:60]!r} is no shape: take steps, ramp, spike, knee or hand, steps:1,2,4@30s, "
                "ramp:1-64@10m, or parts of your own as 4@1m,4-64@5m"
            )
        return _shape(PARTS, [_part(p) for p in _list(text)], level_s)
    if colon and not rest:
        raise ValueError(f"say which users and for how long, as in {_EXAMPLE[name]}, or just {name}")
    numbers, at, time = (part.strip() for part in rest.partition("@"))
    if at and not time:
        raise ValueError(f"there is no time behind the @ in {text[:60]!r}: write it as in {_EXAMPLE[name]}")
    return _named(name, numbers, time, users, level_s)


_EXAMPLE = {
    STEPS: "steps:1,2,4,8@30s",
    RAMP: "ramp:1-64@10m",
    SPIKE: "spike:4-64@1m/10s",
    KNEE: "knee:1-256@20s",
}


def _named(name: str, numbers: str, time: str, users: int, level_s: float) -> Shape:
    if name == STEPS:
        seconds = _seconds(time) if time else level_s
        levels = [_count(n) for n in _list(numbers)] if numbers else doubling(1, users)
        return _shape(name, [Segment(seconds, n, n) for n in levels], seconds)
    default = (max(1, users // 8) if name == SPIKE else 1, users)
    first, last = _range(numbers, name) if numbers else default
    if name == RAMP:
        seconds = _seconds(time) if time else level_s * len(doubling(min(first, last), max(first, last)))
        return _shape(name, [Segment(seconds, first, last)], level_s)
    if name == SPIKE:
        base, slash, top = (part.strip() for part in time.partition("/"))
        base_s = _seconds(base) if base else level_s
        top_s = _seconds(top) if slash else base_s
        parts = [Segment(base_s, first, first), Segment(top_s, last, last), Segment(base_s, first, first)]
        return _shape(name, parts, base_s)
    if last < first:
        raise ValueError(f"the knee is searched from few users to many, as in {_EXAMPLE[KNEE]}")
    return Shape(KNEE, (), first, last, _seconds(time) if time else level_s)


def _shape(kind: str, segments: Sequence[Segment], level_s: float) -> Shape:
    if len(segments) > MOST_PARTS:
        raise ValueError(f"a shape has at most {MOST_PARTS:,} parts")
    if sum(s.seconds for s in segments) > LONGEST_S:
        raise ValueError("a shape lasts a week at most")
    peak = max(max(s.first, s.last) for s in segments)
    return Shape(kind, tuple(segments), segments[0].first, peak, level_s)


def _part(text: str) -> Segment:
    numbers, at, time = (part.strip() for part in text.partition("@"))
    if not at:
        raise ValueError(f"{text[:40]!r} has no time: write a part as 8@30s, or as 8-64@5m")
    first, last = _range(numbers, PARTS) if "-" in numbers else (_count(numbers),) * 2
    return Segment(_seconds(time), first, last)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _range(text: str, name: str) -> tuple[int, int]:
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash:
        raise ValueError(
            f"{text[:40]!r} is not from so many users to so many: write it as in {_EXAMPLE.get(name, '1-64')}"
        )
    return _count(first), _count(last)


def _count(text: str) -> int:
    if not _USERS.fullmatch(text) or not 1 <= int(text) <= MOST_USERS:
        raise ValueError(f"users are a whole number from 1 to {MOST_USERS:,}, not {text[:40]!r}")
    return int(text)


def _seconds(text: str) -> float:
    found = _TIME.fullmatch(text)
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueError(
            f"a part of a shape lasts from a second to a week, as 30s, 5m or 1h: not {text[:40]!r}"
        )
    return seconds
