"""The ratio of two engines, paired by block, with its interval.

Requests of one turn are not independent (they share batches, queue and temperature), so the unit is the
block: one turn of each engine over the same prompts. From each block comes one number, the logarithm of the
ratio of the two values; the interval is Student's t interval of their mean, and exp brings it back. What a
block does to both engines alike (a hot machine, long prompts) drops out of its ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

MIN_BLOCKS = 6
MARGIN = 1.05
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """`ratio` is the geometric mean of the blocks' ratios, None without a block. `low` and `high` bound it
    with the confidence asked for, None where the blocks are too few. `spread` is the standard deviation of
    the logarithms, None of one block."""

    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None


def paired_ratio(
    values: Mapping[int, float],
    baseline: Mapping[int, float],
    *,
    confidence: float = CONFIDENCE,
    min_blocks: int = MIN_BLOCKS,
) -> Ratio:
    """values / baseline over the blocks that both have; a block without two positive values has no ratio."""
    logs = np.array(
        [
            math.log(values[b] / baseline[b])
            for b in sorted(values.keys() & baseline.keys())
            if _positive(values[b]) and _positive(baseline[b])
        ]
    )
    n = len(logs)
    if n == 0:
        return Ratio(0)
    mean = float(logs.mean())
    spread = float(logs.std(ddof=1)) if n > 1 else None
    if spread is None or n < max(min_blocks, 2):
        return Ratio(n, math.exp(mean), spread=spread)
    half = half_width(spread, n, confidence)
    return Ratio(n, math.exp(mean), math.exp(mean - half), math.exp(mean + half), spread)


def half_width(spread: float, blocks: int, confidence: float = CONFIDENCE) -> float:
    """Half the interval of a mean of so many logarithms: t(confidence, n - 1) x spread / sqrt(n)."""
    from scipy.special import stdtrit  # here, since whoever needs no interval shall not load scipy

    return float(stdtrit(blocks - 1, (1 + confidence) / 2)) * spread / math.sqrt(blocks)


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
