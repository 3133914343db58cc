"""What one condition adds to another, from runs that were made in pairs. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.compare import paired_ratio
from loadgen.compare.ratios import half_width

HOLDS, BROKEN, OPEN = "holds", "does not hold", "not decided"


@dataclass(frozen=True)
class Change:
    """A mean over pairs with its 95 % interval (None of too few pairs)."""

    pairs: int
    mean: float
    low: float | None
    high: float | None

    def against(self, limit: float) -> str:
        """Whether it stays at or below `limit`: only the whole interval decides."""
        if self.low is None or self.high is None:
            return OPEN
        return HOLDS if self.high <= limit else BROKEN if self.low > limit else OPEN


def order(conditions: Sequence[str], block: int) -> list[str]:
    """A B C, then C B A, and so on: what drifts in a straight line does the same to all.

    >>> order(("off", "on"), 0), order(("off", "on"), 1)
    (['off', 'on'], ['on', 'off'])
    """
    return list(conditions) if block % 2 == 0 else list(reversed(conditions))


def ratio(on: Sequence[float], off: Sequence[float]) -> Change:
    """on / off, pair by pair: geometric mean, and Student's t interval of the logarithms."""
    found = paired_ratio(dict(enumerate(on)), dict(enumerate(off)))
    return Change(found.blocks, found.ratio if found.ratio is not None else math.nan, found.low, found.high)


def difference(on: Sequence[float], off: Sequence[float]) -> Change:
    """on - off, pair by pair: mean, and Student's t interval."""
    changes = [a - b for a, b in zip(on, off, strict=True)]
    mean = statistics.fmean(changes)
    if len(changes) < 3:
        return Change(len(changes), mean, None, None)
    half = half_width(statistics.stdev(changes), len(changes))
    return Change(len(changes), mean, mean - half, mean + half)


def column(runs: Sequence[Mapping[str, float]], name: str) -> list[float]:
    return [run[name] for run in runs]
