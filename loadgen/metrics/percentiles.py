"""Exact percentiles by nearest rank, from all samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loadgen.metrics.columns import Floats

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


def describe(samples: Floats) -> dict[str, Any]:
    """{n, mean, p50, p95, p99} of the samples, which are sorted in place.

    Of no samples, all but n are None, never 0. p99 of fewer than 1,000 samples rests on its largest few:
    `p99_rough` is then there, and True.
    """
    n = len(samples)
    if n == 0:
        return {"n": 0, "mean": None, **{f"p{p}": None for p in PERCENTILES}}
    samples.sort()  # also makes the mean independent of the order of the journal
    out: dict[str, Any] = {"n": n, "mean": float(np.mean(samples))}
    out.update({f"p{p}": float(samples[rank(n, p)]) for p in PERCENTILES})
    if n < ROUGH_BELOW:
        out["p99_rough"] = True
    return out
