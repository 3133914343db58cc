"""Distributions made small enough to draw, exact at every point that is kept. Pure.

An ECDF of a million samples is a million steps; a picture has room for some hundred. What is kept are points
of the exact ECDF: evenly in the middle, ever closer to each other towards both ends, where p99 and the
outliers are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loadgen.metrics.columns import Bools, Columns, Floats, Ints
from loadgen.metrics.percentiles import rank

MOST_POINTS = 400
FINE_US = 1_000_000  # gaps shorter than this are told to the microsecond, longer ones to the millisecond
_EVENTS_AT_ONCE = 2**22


@dataclass(frozen=True, slots=True)
class Distribution:
    """Points of an ECDF: a share `share` (0 to 1) of the `n` samples is at most `value`."""

    n: int
    value: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.value)


def thinned(samples: Floats, most: int = MOST_POINTS) -> Distribution:
    """The ECDF of samples, with about `most` points: the smallest and largest sample, p50, p95 and p99 (as
    the tables have them) are among them. `samples` are sorted in place."""
    samples.sort()
    n = len(samples)
    kept = _ranks(n, most)
    return Distribution(n, samples[kept], (kept + 1) / max(n, 1))


def of_counts(values: Floats, counts: Ints, most: int = MOST_POINTS) -> Distribution:
    """The same, of `counts[i]` samples at each of the ascending `values`."""
    some = counts > 0
    values, running = values[some], np.cumsum(counts[some])
    n = int(running[-1]) if len(running) else 0
    at = np.unique(np.searchsorted(running, _ranks(n, most) + 1))
    return Distribution(n, values[at], running[at] / max(n, 1))


def _ranks(n: int, most: int) -> Ints:
    """Which of n sorted samples to keep."""
    if n <= most:
        return np.arange(n, dtype=np.int64)
    tail = np.unique(np.round(np.geomspace(1, n / 10, most // 4)).astype(np.int64))
    named = [rank(n, p) for p in (50, 95, 99)]
    even = np.linspace(0, n - 1, most // 2).astype(np.int64)
    kept: Ints = np.unique(np.concatenate((even, tail - 1, n - tail, named)))
    return kept


def gap_counts(columns: Columns, rows: Bools) -> tuple[Floats, Ints]:
    """How often each gap between text-bearing events of one stream came: (milliseconds, counts).

    The samples are those of metrics/chunk_gap.py. They are counted, not kept, so that hundreds of millions
    need no more memory than a thousand.
    """
    fine = np.zeros(FINE_US, dtype=np.int64)
    coarse = np.zeros(1, dtype=np.int64)
    events, starts = columns.event_us, columns.starts
    picked = np.flatnonzero(rows & (np.diff(starts) > 1))
    at = 0
    while at < len(picked):
        first = int(starts[picked[at]])
        end = max(int(np.searchsorted(starts[1:][picked], first + _EVENTS_AT_ONCE, side="right")), at + 1)
        part = picked[at:end]
        gaps = _gaps(events, starts, part)
        at = end
        fine += np.bincount(gaps[gaps < FINE_US], minlength=FINE_US)
        if (long := gaps[gaps >= FINE_US]).size:
            more = np.bincount(np.round(long / 1000).astype(np.int64))
            if len(more) > len(coarse):
                coarse = np.pad(coarse, (0, len(more) - len(coarse)))
            coarse[: len(more)] += more
    values = np.concatenate((np.arange(FINE_US) / 1000.0, np.arange(len(coarse), dtype=np.float64)))
    return values, np.concatenate((fine, coarse))


def _gaps(events: npt.NDArray[np.integer], starts: Ints, part: Ints) -> Ints:
    """Gaps in microseconds within the streams of `part`; a clock that went back gives none below 0."""
    begin, end = int(starts[part[0]]), int(starts[part[-1] + 1])
    at = events[begin:end].astype(np.int64)
    gaps = np.diff(at)
    wanted = np.zeros(len(gaps), dtype=np.bool_)
    for row in _runs(part):  # rows that follow each other lie in one piece
        wanted[int(starts[row[0]]) - begin : int(starts[row[-1] + 1]) - begin - 1] = True
        inner = starts[row[1:]] - begin - 1  # from the last event of one stream to the first of the next
        wanted[inner] = False
    kept: Ints = np.maximum(gaps[wanted], 0)
    return kept


def _runs(part: Ints) -> list[Ints]:
    return list(np.split(part, np.flatnonzero(np.diff(part) != 1) + 1))
