"""History: what the live page draws, second by second, in bounded memory. Pure.

A track is one engine or one GPU; of each second it has a value of every figure, or none. Seconds older than
ten minutes are merged to ten seconds, those older than two hours to a minute, and after a day they go. What
has changed since a client last asked is found by a number that grows with every change (its cursor).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEVELS = ((1, 600), (10, 720), (60, 1320))  # seconds of a bucket, how many are kept
LATEST_S = 120  # a value for a second that is longer ago is not taken: workers are late by seconds
STEPPED_BACK_S = 600  # a clock that was set back by more begins anew
MARKS = 1000

MEAN, MOST, LAST = "mean", "most", "last"


@dataclass(frozen=True, slots=True)
class Figure:
    """`merged` says what becomes of several seconds: their mean, the most of them, or the last of them (a
    percentile of the half minute before it: the mean of percentiles is none)."""

    name: str
    merged: str = MEAN


class _Bucket:
    __slots__ = ("counts", "t", "values", "version")

    def __init__(self, t: int, width: int) -> None:
        self.t = t
        self.version = 0
        self.values: list[float | None] = [None] * width
        self.counts: list[int] | None = None  # seconds in each value, of a merged one


class Track:
    def __init__(self, kind: str, name: str, figures: Sequence[Figure]) -> None:
        self.kind = kind
        self.name = name
        self.figures = figures
        self._index = {figure.name: n for n, figure in enumerate(figures)}
        self._levels: list[deque[_Bucket]] = [deque() for _ in LEVELS]

    @property
    def buckets(self) -> int:
        return sum(map(len, self._levels))

    def put(self, t: int, version: int, values: dict[str, float | None], *, add: bool = False) -> None:
        """Values of the second `t`; with `add` they are added to what is there (other workers')."""
        bucket = self._bucket(t)
        if bucket is None:
            return
        bucket.version = version
        for name, value in values.items():
            n = self._index[name]
            if value is None:
                continue
            before = bucket.values[n]
            if before is None or not add:
                bucket.values[n] = value
            elif self.figures[n].merged == MOST:
                bucket.values[n] = max(before, value)
            else:
                bucket.values[n] = before + value

    def since(self, cursor: int) -> dict[str, Any] | None:
        """Seconds that changed after `cursor`; with 0 all that is known. None if there is nothing."""
        if cursor:
            found = [b for b in self._levels[0] if b.version > cursor]
            steps = [LEVELS[0][0]] * len(found)
        else:
            found, steps = [], []
            for (step, _), level in zip(reversed(LEVELS), reversed(self._levels), strict=True):
                found.extend(level)
                steps.extend([step] * len(level))
        if not found:
            return None
        columns = {
            figure.name: [_short(b.values[n]) for b in found]
            for n, figure in enumerate(self.figures)
            if any(b.values[n] is not None for b in found)
        }
        head = {"kind": self.kind, "name": self.name}
        return {**head, "t": [b.t for b in found], "step": steps, "figures": columns}

    def _bucket(self, t: int) -> _Bucket | None:
        fine = self._levels[0]
        if not fine or t > fine[-1].t:
            fine.append(_Bucket(t, len(self.figures)))
            self._age(t)
            return fine[-1]
        if t < fine[-1].t - LATEST_S:
            return None
        for at in range(len(fine) - 1, -1, -1):
            if fine[at].t == t:
                return fine[at]
            if fine[at].t < t:
                fine.insert(at + 1, _Bucket(t, len(self.figures)))
                return fine[at + 1]
        fine.appendleft(_Bucket(t, len(self.figures)))
        return fine[0]

    def _age(self, now: int) -> None:
        horizon = now + 1
        for n, (step, kept) in enumerate(LEVELS):
            horizon -= step * kept
            level = self._levels[n]
            while level and level[0].t + step <= horizon:
                bucket = level.popleft()
                if n + 1 < len(LEVELS):
                    self._merge(bucket, n + 1)

    def _merge(self, old: _Bucket, n: int) -> None:
        step = LEVELS[n][0]
        level, t = self._levels[n], old.t - old.t % step
        if not level or level[-1].t < t:
            level.append(_Bucket(t, len(self.figures)))
        into = level[-1]
        into.counts = into.counts or [0] * len(self.figures)
        for i, (figure, value) in enumerate(zip(self.figures, old.values, strict=True)):
            if value is None:
                continue
            weight = old.counts[i] if old.counts else 1
            before, seconds = into.values[i], into.counts[i]
            into.counts[i] = seconds + weight
            if before is None or figure.merged == LAST:
                into.values[i] = value
            elif figure.merged == MOST:
                into.values[i] = max(before, value)
            else:
                into.values[i] = (before * seconds + value * weight) / (seconds + weight)


class Marks:
    """What happened when: regions (a turn, a warm-up, a run) and moments, the latest thousand."""

    def __init__(self) -> None:
        self._marks: deque[dict[str, Any]] = deque(maxlen=MARKS)
        self._versions: deque[int] = deque(maxlen=MARKS)
        self._count = 0

    def add(self, version: int, kind: str, t: float, *, end: bool, **facts: Any) -> None:
        """`end`: it has one, which is not known yet."""
        self._count += 1
        self._marks.append({"id": self._count, "kind": kind, "t": t, "open": end, **facts})
        self._versions.append(version)

    def end(self, version: int, kind: str, t: float, **facts: Any) -> None:
        """The last open one of this kind and these facts ends."""
        for n in range(len(self._marks) - 1, -1, -1):
            mark = self._marks[n]
            if mark["kind"] == kind and mark["open"] and all(mark.get(k) == v for k, v in facts.items()):
                mark.update(open=False, end=t)
                self._versions[n] = version
                return

    def end_all(self, version: int, t: float) -> None:
        for n, mark in enumerate(self._marks):
            if mark["open"]:
                mark.update(open=False, end=t)
                self._versions[n] = version

    def since(self, cursor: int) -> list[dict[str, Any]]:
        return [m for m, v in zip(self._marks, self._versions, strict=True) if v > cursor]


class History:
    """All tracks, by kind and name, and the marks. `cursor` is the number of the last change."""

    def __init__(self, kinds: Mapping[str, Sequence[Figure]]) -> None:
        self.cursor = 1
        self.marks = Marks()
        self._kinds = kinds
        self._tracks: dict[tuple[str, str], Track] = {}
        self._newest = 0
        self._forgotten = 0  # a client that asks from before this gets everything anew

    @property
    def buckets(self) -> int:
        return sum(t.buckets for t in self._tracks.values())

    def put(
        self, kind: str, name: str, t: int, values: dict[str, float | None], *, add: bool = False
    ) -> None:
        if t < self._newest - STEPPED_BACK_S:
            self.forget()
        self._newest = max(self._newest, t)
        track = self._tracks.get((kind, name))
        if track is None:
            track = self._tracks[kind, name] = Track(kind, name, self._kinds[kind])
        track.put(t, self.next(), values, add=add)

    def next(self) -> int:
        self.cursor += 1
        return self.cursor

    def forget(self) -> None:
        """Begin anew: the clock was set back, and what follows would be older than what is there."""
        self._tracks.clear()
        self.marks = Marks()
        self._newest = 0
        self._forgotten = self.next()

    def since(self, cursor: int, t: float | None = None) -> dict[str, Any]:
        """What a client lacks that has all up to `cursor`, and asked at the time `t` for the last time.
        `reset` says that it must throw away what it has."""
        known = max(1, self._forgotten) <= cursor <= self.cursor
        if t is not None and t < self._newest - LEVELS[0][0] * LEVELS[0][1] + LATEST_S:
            known = False  # the seconds in between have been merged
        start = cursor if known else 0
        tracks = (track.since(start) for track in self._tracks.values())
        return {
            "cursor": self.cursor,
            "reset": not known,
            "tracks": [found for found in tracks if found],
            "marks": self.marks.since(start),
        }


def _short(value: float | None) -> float | None:
    """Five digits: finer than a pixel."""
    return None if value is None else float(f"{value:.5g}")
