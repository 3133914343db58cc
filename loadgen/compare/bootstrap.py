"""Ratios of percentiles, with intervals from a bootstrap of blocks.

Before they are pooled, blocks are laid over each other: each one's samples are divided by its level, their
geometric mean. The percentile is that of the pooled samples times the geometric mean of the levels: of a
block of the usual level, with the spread that there is within blocks. Else the slowest block alone would make
the 95th percentile, and no number of draws can tell how slow the next one will be.

A percentile is one number for all blocks, not one a block, so its uncertainty is found by drawing blocks
anew: as many as there are, with replacement, the same draw for both engines where they are paired. The
standard deviation of the logarithm of the ratio over all
draws is its standard error. Drawing from n blocks makes it too small by sqrt((n - 1) / n), which is put
right, and the interval is Student's with n - 1 degrees of freedom: percentiles of the draws themselves are
too narrow with six blocks (Hesterberg 2015, "What teachers should know about the bootstrap", American
Statistician 69). Draws are seeded: the same run gives the same interval.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from loadgen.compare.ratios import Ratio, estimated, welch
from loadgen.compare.samples import Sample
from loadgen.metrics.columns import Floats, Ints

DRAWS = 2000
SEED = 20130411


def paired_percentiles(
    values: Mapping[int, Sample], baseline: Mapping[int, Sample], percentiles: Sequence[float]
) -> list[Ratio]:
    """The ratio of each percentile (of 100) over the blocks that both have."""
    blocks = sorted(values.keys() & baseline.keys())
    n = len(blocks)
    if n == 0:
        return [Ratio(0) for _ in percentiles]
    logs = [log_percentiles([of[b] for b in blocks], draws(n), percentiles) for of in (values, baseline)]
    with np.errstate(invalid="ignore"):  # of two percentiles that are 0
        return [_ratio(log, n) for log in logs[0] - logs[1]]


def unpaired_percentiles(
    values: Mapping[int, Sample], baseline: Mapping[int, Sample], percentiles: Sequence[float]
) -> list[Ratio]:
    """The same of runs that share no blocks: each side's blocks are drawn by themselves."""
    sides = [[of[b] for b in sorted(of)] for of in (values, baseline)]
    n = [len(side) for side in sides]
    if min(n) == 0:
        return [Ratio(0) for _ in percentiles]
    logs = [log_percentiles(side, draws(len(side)), percentiles) for side in sides]
    out = []
    for mine, theirs in zip(*logs, strict=True):
        log = float(mine[0] - theirs[0])
        if not math.isfinite(log):
            out.append(Ratio(0))
        elif min(n) < 2 or not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
            out.append(Ratio(min(n), math.exp(log)))
        else:
            squares = [float(of[1:].var()) * k / (k - 1) for of, k in zip((mine, theirs), n, strict=True)]
            spread, freedom = welch(squares, n)
            out.append(estimated(log, spread, min(n), freedom))
    return out


@functools.lru_cache(maxsize=16)
def draws(blocks: int) -> Ints:
    """How often each draw takes each block: DRAWS + 1 rows that add up to `blocks`. The first row takes each
    block once, which is the run itself."""
    rng = np.random.default_rng([SEED, blocks])
    drawn = rng.multinomial(blocks, [1 / blocks] * blocks, size=DRAWS)
    return np.concatenate((np.ones((1, blocks), dtype=np.int64), drawn.astype(np.int64)))


def log_percentiles(blocks: Sequence[Sample], weights: Ints, percentiles: Sequence[float]) -> Floats:
    """percentiles x draws: the logarithm, of blocks laid over each other, at their mean level."""
    levels = np.array([_level(block) for block in blocks])
    alike = [
        Sample(block.values / math.exp(k), block.counts) for block, k in zip(blocks, levels, strict=True)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(pooled(alike, weights, percentiles))
    logs += weights @ levels / weights.sum(axis=1)
    return logs


def _level(block: Sample) -> float:
    """The mean logarithm of the samples that are above 0; 0 if none is."""
    above = block.values > 0
    counts = block.counts[above]
    return float(np.log(block.values[above]) @ counts / counts.sum()) if len(counts) else 0.0


def pooled(blocks: Sequence[Sample], weights: Ints, percentiles: Sequence[float]) -> Floats:
    """percentiles x draws: nearest rank (as metrics.percentiles.rank) among the samples of each draw."""
    lengths = [len(b.values) for b in blocks]
    values = np.concatenate([b.values for b in blocks])
    order = np.argsort(values, kind="stable")
    values = values[order]
    # upto[b, i]: samples of block b among values[0 .. i].
    upto = np.zeros((len(blocks), len(values)), dtype=np.int64)
    upto[np.repeat(np.arange(len(blocks)), lengths)[order], np.arange(len(values))] = np.concatenate(
        [b.counts for b in blocks]
    )[order]
    np.cumsum(upto, axis=1, out=upto)
    totals = weights @ np.array([b.n for b in blocks], dtype=np.int64)
    out = np.empty((len(percentiles), len(weights)))
    for row, p in enumerate(percentiles):
        wanted = np.clip(np.floor(totals * p / 100 + 0.5).astype(np.int64), 1, totals)
        low, high = np.zeros(len(weights), dtype=np.int64), np.full(len(weights), len(values) - 1)
        while (low < high).any():  # the first value up to which a draw has as many samples as wanted
            middle = (low + high) // 2
            enough = (upto[:, middle] * weights.T).sum(axis=0) >= wanted
            high = np.where(enough, middle, high)
            low = np.where(enough, low, middle + 1)
        out[row] = values[low]
    return out


def _ratio(logs: Floats, blocks: int) -> Ratio:
    """`logs`: of the run itself, then of every draw. A percentile of 0 has no ratio."""
    log = float(logs[0])
    if not math.isfinite(log):
        return Ratio(0)
    if blocks < 2 or not np.isfinite(logs).all():
        return Ratio(blocks, math.exp(log))
    return estimated(log, float(logs[1:].std()) * blocks / math.sqrt(blocks - 1), blocks)
