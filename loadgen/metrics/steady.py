"""Was the engine in a steady state while it was measured? Found from the requests, not assumed.

Three things are looked for, each in figures that requests of a fixed workload should repeat:

- `settling`: a beginning unlike the rest, by MSER (K. P. White, Simulation 69(6), 1997): it cuts where the
  rest's squared standard error is least, sum (x - mean)^2 / m^2 over the m batch means that stay, and at most
  half. A batch is five requests (MSER-5, S. C. Spratt, 1998), or as many as were in flight, since those that
  are sent together are served in any order. A turn has a shape of its own that is no warm-up (16 prompts at
  once, then fewer), so each batch mean is divided by the median of its place over all turns. `effect` is
  what the beginning does to the mean, mean of all / mean of the rest - 1; `errors` how many standard errors
  the beginning and the rest are apart.
- `turns`: a trend from turn to turn, by H. B. Mann's and M. G. Kendall's test on the turns' means (of
  throughput, the turns' own). `change` is Theil's and Sen's slope of the logarithms, from first to last turn.
- `within`: a trend inside turns, of TPOT: the median of the last third of a turn's requests against that of
  the first third, those left out that were sent while the turn filled up or drained. One turn is one
  observation; the interval is Student's t, 95 %.

All changes are shares: 0.1 is 10 % more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns, Floats, Ints
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals
from loadgen.record import OK, WARMUP

FIGURES = ("ttft_ms", "tpot_ms")
BATCH = 5
LEAST_BATCHES = 6
LEAST_TURNS = 3  # of which a place's median tells an odd turn from the others
LEAST_TREND = 6  # turns: of five, no order is rarer than 1 in 60
MOST_TREND = 500
LEAST_WITHIN = 6
EXACT = 40
MOST_ERRORS = 1e6  # a rest without any spread, as made records have it


def steadiness(columns: Columns, parts: Sequence[tuple[Turn, Totals]]) -> dict[str, Any]:
    """{"settling": {figure: {"requests", "of", "effect", "errors"}},
    "turns": {figure: {"change", "p", "turns"}}, "within": {figure: {"change", "low", "high", "turns"}}}, each
    only where there is enough to tell."""
    orders = _by_turn(columns, [turn for turn, _ in parts])
    gone_ns = columns.whole["sent_ns"] + np.round(columns.gone_ms() * 1e6).astype(np.int64)
    most = [_most_in_flight(columns.whole["sent_ns"][order], gone_ns[order]) for order in orders]
    out: dict[str, Any] = {"settling": {}, "turns": {}, "within": {}}
    for figure in FIGURES:
        turns = [_values(columns, order, figure) for order in orders]
        if (found := settling(turns, max([BATCH, *most]))) is not None:
            out["settling"][figure] = found
        if (found := trend([float(t.mean()) for t in turns if len(t)])) is not None:
            out["turns"][figure] = found
    speeds = [sums.tokens / sums.seconds for _, sums in parts if sums.seconds > 0]
    if (found := trend(speeds)) is not None:
        out["turns"]["throughput_tokens_per_s"] = found
    # Sent while the turn was full: without as many at each end as were in flight at once.
    cores = [order[m : len(order) - m] for order, m in zip(orders, most, strict=True)]
    if (found := within([_values(columns, core, "tpot_ms") for core in cores])) is not None:
        out["within"]["tpot_ms"] = found
    return {name: what for name, what in out.items() if what}


def settling(turns: Sequence[Floats], batch: int = BATCH) -> dict[str, Any] | None:
    """`requests`: how many of the beginning are unlike the rest, of `of`; 0 is a clean run. None of too few
    turns or requests. `turns` are the values of each turn's requests in the order in which they were sent."""
    turns = [t for t in turns if len(t)]
    if len(turns) < LEAST_TURNS:
        return None
    size = min(batch, *(len(t) for t in turns))
    most = max(len(t) // size for t in turns)
    means = np.full((len(turns), most), np.nan)
    for row, values in zip(means, turns, strict=True):
        n = len(values) // size
        row[:n] = values[: n * size].reshape(n, size).mean(axis=1)
    means = means[:, np.isfinite(means).sum(axis=0) >= LEAST_TURNS]
    usual = np.nanmedian(means, axis=0)
    ratios = (means / np.where(usual > 0, usual, np.nan)).ravel()
    ratios = ratios[np.isfinite(ratios)]
    if len(ratios) < LEAST_BATCHES:
        return None
    cut = mser(ratios)
    first, rest = ratios[:cut], ratios[cut:]
    error = float(rest.std(ddof=1)) * math.sqrt(1 / max(cut, 1) + 1 / len(rest))
    apart = abs(float(first.mean() - rest.mean())) if cut else 0.0
    return {
        "requests": cut * size,
        "of": len(ratios) * size,
        "effect": float(ratios.mean() / rest.mean() - 1),
        "errors": min(apart / error, MOST_ERRORS) if error else MOST_ERRORS if apart else 0.0,
    }


def mser(batches: Floats) -> int:
    """How many batch means to cut off, at most half of them.

    >>> mser(np.array([9.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.1])), mser(np.ones(8))
    (2, 0)
    """
    k = len(batches)
    x = batches - np.median(batches)  # near 0, so that sums of squares lose no digits
    left = np.arange(k, k - k // 2 - 1, -1)
    sums, squares = (np.cumsum(v[::-1])[::-1][: k // 2 + 1] for v in (x, x**2))
    return int(np.argmin(np.maximum(squares - sums**2 / left, 0.0) / left**2))


def trend(values: Sequence[float]) -> dict[str, Any] | None:
    """`p` of no trend, two-sided, and `change` from the first value to the last; None of too few values, or
    where one is not positive."""
    n = len(values)
    if n < LEAST_TREND or min(values) <= 0:
        return None
    x = np.log(np.asarray(values))
    if n > MOST_TREND:  # all pairs of thousands of turns are too many: means of neighbours instead
        x = np.array([part.mean() for part in np.array_split(x, MOST_TREND)])
    n = len(x)
    later, earlier = np.triu_indices(n, 1)[::-1]
    steps = np.round(x[later] - x[earlier], 9)  # the order of what only rounding tells apart is no trend
    score = abs(int(np.sign(steps).sum()))
    slope = float(np.median(steps / (later - earlier)))
    return {"change": math.expm1(slope * (n - 1)), "p": kendall_p(score, n), "turns": len(values)}


def kendall_p(score: int, n: int) -> float:
    """The chance that n values in random order have a Kendall score of `score` or more, either way.

    >>> round(kendall_p(10, 5), 4), round(kendall_p(13, 6), 4), kendall_p(0, 5)
    (0.0167, 0.0167, 1.0)
    """
    if score <= 0:
        return 1.0
    if n > EXACT:
        return math.erfc((score - 1) / math.sqrt(n * (n - 1) * (2 * n + 5) / 18) / math.sqrt(2))
    inversions = (n * (n - 1) // 2 - score) // 2
    return min(1.0, 2 * sum(_orders(n)[: inversions + 1]) / math.factorial(n))


@lru_cache(maxsize=EXACT)
def _orders(n: int) -> tuple[int, ...]:
    """How many orders of n things have 0, 1, 2, ... inversions."""
    counts = [1]
    for size in range(2, n + 1):
        wider = [0] * (len(counts) + size - 1)
        for shift in range(size):
            for i, c in enumerate(counts):
                wider[i + shift] += c
        counts = wider
    return tuple(counts)


def within(turns: Sequence[Floats]) -> dict[str, Any] | None:
    """The mean change over the turns and its interval; None of too few turns with six requests or more."""
    logs = []
    for values in turns:
        third = len(values) // 3
        if third >= 2:
            first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
            if first > 0 and last > 0:
                logs.append(math.log(last / first))
    n = len(logs)
    if n < LEAST_WITHIN:
        return None
    from scipy.special import stdtrit

    mean = float(np.mean(logs))
    half = float(stdtrit(n - 1, 0.975)) * float(np.std(logs, ddof=1)) / math.sqrt(n)
    changes = {"change": mean, "low": mean - half, "high": mean + half}
    return {**{name: math.expm1(v) for name, v in changes.items()}, "turns": n}


def _by_turn(columns: Columns, turns: Sequence[Turn]) -> list[Ints]:
    """Which rows are each turn's requests, in the order in which they were sent."""
    picked = np.flatnonzero(columns.word["phase"] != WARMUP)
    number = columns.whole["turn"][picked]
    picked = picked[np.lexsort((columns.whole["sent_ns"][picked], number))]
    number = np.sort(number)
    wanted = [t.turn for t in turns]
    edges = zip(np.searchsorted(number, wanted), np.searchsorted(number, wanted, "right"), strict=True)
    return [picked[a:b] for a, b in edges]


def _values(columns: Columns, order: Ints, figure: str) -> Floats:
    """The figure of the successful ones of the rows, in their order."""
    values: Floats = columns.number[figure][order]
    present: Floats = values[(columns.word["outcome"][order] == OK) & np.isfinite(values)]
    return present


def _most_in_flight(sent_ns: Ints, gone_ns: Ints) -> int:
    """Of requests in the order in which they were sent."""
    left = np.searchsorted(np.sort(gone_ns), sent_ns, side="right")
    return int((np.arange(1, len(sent_ns) + 1) - left).max()) if len(sent_ns) else 0
