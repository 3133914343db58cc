"""Exact percentiles by nearest rank, from all samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loadgen.metrics.columns import Floats, Ints

PERCENTILES = (50, 95, 99)
ROUGH_BELOW = 1000


def rank(n: int, p: float) -> int:
    """The index, counted from 0, of the p-th percentile among n sorted samples: floor(n p / 100 + 0.5) - 1,
    kept inside the list. This is InfluxQL's PERCENTILE(), so that dashboards say the same.

    >>> rank(100, 99), rank(10, 50), rank(1, 1)
    (98, 4, 0)
    """
    if n < 1:
        raise ValueError("there is no percentile of nothing")
    return min(max(math.floor(n * p / 100 + 0.5) - 1, 0), n - 1)


def describe(samples: Floats, counts: Ints | None = None) -> dict[str, Any]:
    """{n, mean, p50, p95, p99} of the samples; with `counts`, of sorted values and how often each occurs.

    Of no samples, all but n are None, never 0. p99 of fewer than 1,000 samples rests on its largest few:
    `p99_rough` is then there, and True.
    """
    # Sorted, so that the mean does not depend on the order of the journal.
    values = np.sort(samples) if counts is None else samples
    upto = np.arange(1, len(values) + 1) if counts is None else np.cumsum(counts)
    n = int(upto[-1]) if len(upto) else 0
    if n == 0:
        return {"n": 0, "mean": None, **{f"p{p}": None for p in PERCENTILES}}
    total = np.sum(values if counts is None else values * counts)
    out: dict[str, Any] = {"n": n, "mean": float(total / n)}
    for p in PERCENTILES:
        out[f"p{p}"] = float(values[np.searchsorted(upto, rank(n, p), side="right")])
    if n < ROUGH_BELOW:
        out["p99_rough"] = True
    return out
