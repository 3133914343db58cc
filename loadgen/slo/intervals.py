"""How far a figure of one run can be trusted: intervals of percentiles, shares and means.

Requests of one turn are not independent. Where turns differ by more than chance, so many requests are worth
fewer: n / design effect of them (L. Kish, "Survey Sampling", 1965), and the intervals are as wide as of that
many independent ones (E. L. Korn and B. I. Graubard, Survey Methodology 24(2), 1998, for shares; R. S.
Woodruff, JASA 47, 1952, for percentiles by way of shares).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadgen.metrics.columns import Floats

CONFIDENCE = 0.95

Bounds = tuple[float | None, float | None]  # None: no bound on that side


def design_effect(hits: Sequence[int], of: Sequence[int]) -> float:
    """How many times larger the variance of a share is than it would be of independent samples: `hits[t]` of
    `of[t]` samples in turn t. At least 1; 1 of fewer than two turns, or where all or none hit."""
    k, n, x = np.array(hits, dtype=float), np.array(of, dtype=float), len(of)
    total = float(n.sum())
    share = float(k.sum()) / total if total else 0.0
    if x < 2 or not 0 < share < 1:
        return 1.0
    variance = x / (x - 1) * float(((k - n * share) ** 2).sum()) / total**2
    return max(1.0, variance / (share * (1 - share) / total))


def percentile_interval(
    samples: Floats, p: float, effect: float = 1.0, confidence: float = CONFIDENCE
) -> Bounds:
    """The p-th percentile's interval by order statistics, from samples in ascending order: it covers whatever
    the distribution is. A bound that would lie beyond the last sample is None.

    >>> percentile_interval(np.arange(1.0, 101.0), 50)  # ranks 40 and 61 of 100: a classical table's
    (40.0, 61.0)
    """
    n = len(samples)
    independent = int(n / effect)
    if independent < 1:
        return None, None
    tail = (1 - confidence) / 2
    low = _quantile(tail, independent, p / 100)
    high = _quantile(1 - tail, independent, p / 100) + 1
    below = math.floor(low * n / independent) if low >= 1 else 0
    above = math.ceil(high * n / independent) if high <= independent else n + 1
    return (
        float(samples[below - 1]) if below >= 1 else None,
        float(samples[above - 1]) if above <= n else None,
    )


def _quantile(q: float, n: int, p: float) -> int:
    """The smallest k with P(Binomial(n, p) <= k) >= q."""
    from scipy.special import bdtr  # here, since whoever needs no interval shall not load scipy

    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        if bdtr(middle, n, p) >= q:
            high = middle
        else:
            low = middle
    return high


def share_interval(
    hits: int, of: int, effect: float = 1.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The exact interval of a share (C. J. Clopper and E. S. Pearson, Biometrika 26, 1934).

    >>> [round(v, 4) for v in share_interval(0, 100)], [round(v, 3) for v in share_interval(5, 10)]
    ([0.0, 0.0362], [0.187, 0.813])
    """
    from scipy.special import betaincinv

    if of < 1:
        return 0.0, 1.0
    n, k, tail = of / effect, hits / effect, (1 - confidence) / 2
    low = 0.0 if hits == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if hits == of else float(betaincinv(k + 1, n - k, 1 - tail))
    return low, high


def mean_interval(value: float, turns: Sequence[float], confidence: float = CONFIDENCE) -> Bounds:
    """Student's t interval around `value` from the logarithms of the figures of single turns, so that it
    stays above 0; no bounds of fewer than two turns, or of one without a positive figure."""
    from scipy.special import stdtrit

    n = len(turns)
    if n < 2 or min(turns) <= 0:
        return None, None
    spread = float(np.std(np.log(turns), ddof=1))
    factor = math.exp(float(stdtrit(n - 1, (1 + confidence) / 2)) * spread / math.sqrt(n))
    return value / factor, value * factor


def enough(share: float, p: float, effect: float = 1.0, confidence: float = CONFIDENCE) -> int | None:
    """About how many samples would decide whether a share lies above `p` or below it, if the one seen is the
    true one; None for more than a million."""
    from scipy.special import ndtri

    tail = (1 - confidence) / 2
    least = math.log(tail) / math.log(max(p, 1 - p)) if 0 < p < 1 else math.inf  # else the bound has no end
    if share == p:
        return None
    needed = max(float(ndtri(tail)) ** 2 * p * (1 - p) / (share - p) ** 2, least) * effect
    return math.ceil(needed) if needed <= 1e6 else None
