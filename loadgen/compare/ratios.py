"""The ratio of two engines with its interval, from one number a block.

Requests of one turn are not independent (they share batches, queue and temperature), so the unit is the
block: one turn of each engine over the same prompts. From each block comes one number, the logarithm of the
ratio of the two values; the interval is Student's t interval of their mean, and exp brings it back. What a
block does to both engines alike (a hot machine, long prompts) drops out of its ratio.

Where nothing pairs the blocks of two runs, the logarithms of the blocks' values are the numbers, and the
interval is Welch's for the difference of their means.
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
    """`ratio` is exp of the estimated logarithm, None without a block. `low` and `high` bound it with the
    confidence asked for, None where the blocks are too few. `spread` is the logarithm's standard error times
    the square root of `blocks` (of a paired ratio: the standard deviation of the blocks' logarithms), None
    of one block. `freedom` are the degrees of freedom, blocks - 1 if None; `blocks` is the smaller number
    where the two sides have different ones."""

    blocks: int
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    spread: float | None = None
    freedom: float | None = None

    def bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """The interval with another confidence; None where there is none."""
        if self.ratio is None or self.spread is None or self.low is None:
            return None
        half = half_width(self.spread, self.blocks, confidence, self.freedom)
        return self.ratio * math.exp(-half), self.ratio * math.exp(half)

    def inverse(self) -> Ratio:
        """baseline / engine."""
        return Ratio(
            self.blocks,
            None if self.ratio is None else 1 / self.ratio,
            None if self.high is None else 1 / self.high,
            None if self.low is None else 1 / self.low,
            self.spread,
            self.freedom,
        )


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
    if len(logs) == 0:
        return Ratio(0)
    spread = float(logs.std(ddof=1)) if len(logs) > 1 else None
    return estimated(float(logs.mean()), spread, len(logs), confidence=confidence, min_blocks=min_blocks)


def unpaired_ratio(
    values: Mapping[int, float],
    baseline: Mapping[int, float],
    *,
    confidence: float = CONFIDENCE,
    min_blocks: int = MIN_BLOCKS,
) -> Ratio:
    """The geometric mean of the values / that of the baseline's, with Welch's interval; blocks without a
    positive value are left out."""
    logs = [np.log([v for _, v in sorted(of.items()) if _positive(v)]) for of in (values, baseline)]
    blocks = min(map(len, logs))
    if blocks == 0:
        return Ratio(0)
    mean = float(logs[0].mean() - logs[1].mean())
    if blocks == 1:
        return Ratio(1, math.exp(mean))
    squares = [float(of.var(ddof=1)) / len(of) for of in logs]
    spread, freedom = welch(squares, [len(of) for of in logs])
    return estimated(mean, spread, blocks, freedom, confidence=confidence, min_blocks=min_blocks)


def welch(squared_errors: list[float], blocks: list[int]) -> tuple[float, float]:
    """The `spread` and degrees of freedom (Welch and Satterthwaite) of a difference of two independent
    estimates, from their squared standard errors."""
    total = sum(squared_errors)
    parts = [e * e / (n - 1) for e, n in zip(squared_errors, blocks, strict=True)]
    freedom = total * total / sum(parts) if sum(parts) > 0 else float(sum(blocks) - len(blocks))
    return math.sqrt(total * min(blocks)), freedom


def estimated(
    log: float,
    spread: float | None,
    blocks: int,
    freedom: float | None = None,
    *,
    confidence: float = CONFIDENCE,
    min_blocks: int = MIN_BLOCKS,
) -> Ratio:
    """A ratio from its logarithm, with an interval if the blocks are enough."""
    if spread is None or blocks < max(min_blocks, 2):
        return Ratio(blocks, math.exp(log), spread=spread, freedom=freedom)
    half = half_width(spread, blocks, confidence, freedom)
    return Ratio(blocks, math.exp(log), math.exp(log - half), math.exp(log + half), spread, freedom)


def half_width(
    spread: float, blocks: int, confidence: float = CONFIDENCE, freedom: float | None = None
) -> float:
    """Half the interval of a mean of so many logarithms: t(confidence, n - 1) x spread / sqrt(n)."""
    from scipy.special import stdtrit  # here, since whoever needs no interval shall not load scipy

    t = stdtrit(blocks - 1 if freedom is None else freedom, (1 + confidence) / 2)
    return float(t) * spread / math.sqrt(blocks)


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
