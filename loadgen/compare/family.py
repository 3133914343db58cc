"""Many claims at once: Holm's correction, so that a family's answers are all right with 95 %.

The interval of one figure is right in 95 % of runs by itself. Of twenty figures, one in twenty would be
wrong, and people look at the one that stands out. So each claim is asked how sure it is: its p is the
smallest error probability at which its interval lies beyond the margin, or within it. Holm (1979, "A simple
sequentially rejective multiple test procedure"): of m claims, the surest is made if m p <= 5 %, the next if
(m - 1) p <= 5 %, and so on until one fails; it and all behind it are not made. That holds however much the
figures depend on each other, and they do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadgen.compare.ratios import MARGIN, Ratio


def p_value(ratio: Ratio, margin: float = MARGIN) -> float | None:
    """The smallest error probability at which the interval has an answer to the margin; None without an
    interval, 1 of a ratio on the margin itself."""
    if ratio.ratio is None or ratio.spread is None or ratio.low is None:
        return None
    room = abs(abs(math.log(ratio.ratio)) - math.log(margin))
    if room == 0:
        return 1.0
    error = ratio.spread / math.sqrt(ratio.blocks)
    if error == 0:
        return 0.0
    from scipy.special import stdtr

    return float(2 * stdtr(ratio.blocks - 1 if ratio.freedom is None else ratio.freedom, -room / error))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """The p of each claim among them all: made if at most 5 %. Claims without a p are no claims.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    out: list[float | None] = [None] * len(p)
    known = sorted((value, k) for k, value in enumerate(p) if value is not None)
    largest = 0.0
    for rank, (value, k) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        out[k] = largest
    return out
