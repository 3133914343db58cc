"""Statistics of right and wrong answers: of one engine, and of two on the same items.

Counts of a pair of engines a and b: `only_a` items that a alone has right, `only_b` that b alone has right,
`n` items that both answered. Differences are a - b, as shares (0.05 = 5 points). E. Miller, "Adding Error
Bars to Evals" (arXiv 2411.00640), says why pairs, and S. Bowyer et al. (arXiv 2503.01747) why not the normal
approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

CONFIDENCE = 0.95
DRAWS = 20_000
SEED = 20_240_711

Interval = tuple[float, float]


def wilson(right: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a share (E. B. Wilson, JASA 22, 1927); (0, 1) of nothing.

    >>> [round(v, 4) for v in wilson(81, 263)]  # R. G. Newcombe, Statistics in Medicine 17, 1998, table I
    [0.2553, 0.3662]
    """
    if n < 1:
        return 0.0, 1.0
    z = _z(confidence)
    share = right / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (0.0 if right == 0 else centre - half), (1.0 if right == n else centre + half)


def mcnemar(only_a: int, only_b: int) -> tuple[float, float]:
    """The p values that two engines are right equally often, exact and mid-p (Q. McNemar, Psychometrika 12,
    1947; M. W. Fagerland, S. Lydersen, P. Laake, BMC Medical Research Methodology 13:91, 2013). 1 without any
    flip.

    >>> [round(p, 4) for p in mcnemar(1, 7)]  # the same paper's table of airway hyper-responsiveness
    [0.0703, 0.0391]
    """
    from scipy.special import bdtr  # here, since whoever needs no p value shall not load scipy

    n = only_a + only_b
    if n == 0:
        return 1.0, 1.0
    least = min(only_a, only_b)
    ways = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
    point = math.exp(ways - n * math.log(2))
    if only_a == only_b:
        return 1.0, 1.0 - 0.5 * point
    exact = min(1.0, 2 * float(bdtr(least, n, 0.5)))
    return exact, exact - point


def flips(only_a: int, only_b: int, n: int) -> float:
    """The share of items that one has right and the other wrong, whichever way: two engines of the same
    accuracy may still answer differently (A. Dutta et al., "Accuracy is Not All You Need", arXiv
    2407.09141)."""
    return (only_a + only_b) / n if n else 0.0


def bootstrap(only_a: int, only_b: int, n: int, confidence: float = CONFIDENCE, seed: int = SEED) -> Interval:
    """The percentile interval of the difference when items are drawn again, with their pair of answers
    (B. Efron, 1979). Items of one kind (a alone right, b alone right, the same) are interchangeable, so what
    is drawn is how many of each kind there are."""
    if n < 1:
        return -1.0, 1.0
    draws = np.random.default_rng(seed).multinomial(
        n, [only_a / n, only_b / n, max(0.0, 1 - only_a / n - only_b / n)], size=DRAWS
    )
    tail = (1 - confidence) / 2 * 100
    low, high = np.percentile((draws[:, 0] - draws[:, 1]) / n, [tail, 100 - tail])
    return float(low), float(high)


def score_interval(only_a: int, only_b: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a paired difference (T. Tango, Statistics in Medicine 17, 1998). It stays honest
    where few items flip: without any flip it is as wide as n allows, where a bootstrap's has no width.

    >>> [round(v, 3) for v in score_interval(1, 7, 21)]  # Fagerland, Lydersen and Laake, 2014, of Tango's
    [-0.517, -0.026]
    """
    if n < 1:
        return -1.0, 1.0
    z = _z(confidence)

    def distance(delta: float) -> float:
        """How many standard errors the counts lie from a true difference of delta."""
        first = -only_a - only_b + (2 * n - only_a + only_b) * delta
        last = -only_b * delta * (1 - delta)
        q = (math.sqrt(max(0.0, first * first - 8 * n * last)) - first) / (4 * n)
        variance = n * (2 * q + delta * (1 - delta))
        top = only_a - only_b - n * delta
        return top / math.sqrt(variance) if variance > 1e-12 else math.copysign(math.inf, top) if top else 0.0

    seen = (only_a - only_b) / n
    return _cross(distance, -1.0, seen, z), _cross(distance, seen, 1.0, -z)


def difference_interval(only_a: int, only_b: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval by which engines are judged: the wider bound, each side, of the paired bootstrap's and the
    score interval's. With many flips the two agree."""
    one, other = bootstrap(only_a, only_b, n, confidence), score_interval(only_a, only_b, n, confidence)
    return min(one[0], other[0]), max(one[1], other[1])


def half_width(share: float, n: int, confidence: float = CONFIDENCE) -> float:
    """About how far the interval of a difference reaches to each side at a share of flips: what so many items
    can tell, before they are asked.

    >>> [round(100 * half_width(0.10, n), 1) for n in (200, 1319, 14042)]  # points
    [4.4, 1.7, 0.5]
    """
    return _z(confidence) * math.sqrt(share / n)


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def _cross(distance: Callable[[float], float], low: float, high: float, z: float) -> float:
    """Where the falling `distance` equals z, between low and high; an end if it never does."""
    for _ in range(60):
        middle = (low + high) / 2
        if distance(middle) > z:
            low = middle
        else:
            high = middle
    return (low + high) / 2
