"""Distributions made small enough to draw, exact at every point that is kept. Pure.

An ECDF of a million samples is a million steps; a picture has room for some hundred. What is kept are points
of the exact ECDF: evenly in the middle, ever closer to each other towards both ends, where p99 and the
outliers are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadgen.metrics.columns import Floats, Ints
from loadgen.metrics.percentiles import rank

MOST_POINTS = 400


@dataclass(frozen=True, slots=True)
class Distribution:
    """Points of an ECDF: a share `share` (0 to 1) of the `n` samples is at most `value`."""

    n: int
    value: Floats
    share: Floats

    def __len__(self) -> int:
        return len(self.value)


def of_counts(values: Floats, counts: Ints, most: int = MOST_POINTS) -> Distribution:
    """The ECDF of `counts[i]` samples at each of the ascending `values`, with about `most` points: the
    smallest and largest sample, p50, p95 and p99 (as the tables have them) are among them."""
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
