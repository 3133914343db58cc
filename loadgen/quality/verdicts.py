"""What a pair of engines' answers allow to say: worse, better, no difference larger than the margin, or
nothing.

A claim that engines differ needs both: exact McNemar's p, after Holm's correction over all pairs and tasks of
one summary, of at most 5 %, and an interval without 0. "No difference larger than the margin" needs the whole
interval within the margin. "Equal" is never said: no number of items shows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .paired import CONFIDENCE, difference_interval, flips, half_width, mcnemar

MARGIN = 0.05  # 5 points
FAILED = 0.05  # with a larger share of items that failed on either side nothing is said
MOST = 1_000_000

BETTER, WORSE = "better", "worse"
WITHIN = "no difference larger than the margin"
NOT_DECIDABLE = "not decidable"


def pair_row(
    engine: str, baseline: str, counts: Mapping[tuple[bool, bool], int], failed: int
) -> dict[str, Any]:
    """A pair's figures from how many items were (right by the engine, right by the baseline); `failed` items
    have no answer on a side. Without an item that both answered there are only counts."""
    n, only_a, only_b = sum(counts.values()), counts.get((True, False), 0), counts.get((False, True), 0)
    both = counts.get((True, True), 0)
    pair: dict[str, Any] = {"engine": engine, "baseline": baseline, "items": n, "failed": failed}
    pair |= {"flips": only_a + only_b, "only_a": only_a, "only_b": only_b}
    if not n:
        return pair
    low, high = difference_interval(only_a, only_b, n)
    p_exact, p_mid = mcnemar(only_a, only_b)
    return pair | {
        "flip_share": flips(only_a, only_b, n),
        "accuracy": (both + only_a) / n,
        "baseline_accuracy": (both + only_b) / n,
        "difference": (only_a - only_b) / n,
        "low": low,
        "high": high,
        "p_exact": p_exact,
        "p_mid": p_mid,
    }


def with_answers(pairs: Sequence[dict[str, Any]], margin: float) -> None:
    """Adds to the pairs of one summary their `p_adjusted`, `margin`, `answer` and `sentence`, and `needed`,
    about how many items would decide, where that can be said."""
    # Here, since the comparison of runs reads this package.
    from loadgen.compare.family import holm

    for pair, adjusted in zip(pairs, holm([pair.get("p_exact") for pair in pairs]), strict=True):
        pair["margin"] = margin
        if adjusted is not None:
            pair["p_adjusted"] = adjusted
        pair["answer"] = _answer(pair)
        if pair["answer"] == NOT_DECIDABLE and (needed := _needed(pair)) is not None:
            pair["needed"] = needed
        pair["sentence"] = _sentence(pair)


def _too_many_failed(pair: Mapping[str, Any]) -> bool:
    return bool(pair["failed"] > FAILED * (pair["items"] + pair["failed"]))


def _answer(pair: Mapping[str, Any]) -> str:
    if not pair["items"] or _too_many_failed(pair):
        return NOT_DECIDABLE
    low, high = pair["low"], pair["high"]
    if pair["p_adjusted"] <= 1 - CONFIDENCE + 1e-12 and not low <= 0 <= high:
        return BETTER if low > 0 else WORSE
    return WITHIN if -pair["margin"] <= low and high <= pair["margin"] else NOT_DECIDABLE


def _needed(pair: Mapping[str, Any]) -> int | None:
    """So that the interval around the difference seen would lie within the margin, or beyond 0."""
    n, difference = pair["items"], abs(pair.get("difference", 0.0))
    if not n or _too_many_failed(pair) or not pair["flips"]:
        return None
    reach = max(pair["margin"] - difference, difference)
    needed = math.ceil((half_width(pair["flip_share"], 1) / reach) ** 2)
    return needed if n < needed <= MOST else None


def _sentence(pair: Mapping[str, Any]) -> str:
    a, b, n, task = pair["engine"], pair["baseline"], pair["items"], pair["task"]
    if not n:
        return f"{a} and {b} have no {task} items that both answered."
    if _too_many_failed(pair):
        asked = n + pair["failed"]
        return f"{a} and {b} on {task}: not decidable, since {pair['failed']} of {asked} items failed."
    margin = f"{_number(pair['margin'])} points"
    span = f"{_signed(pair['low'])} to {_signed(pair['high'])} points at 95 %"
    noise = f" Asked again, an engine flips {_percent(pair['noise'])}." if "noise" in pair else ""
    changed = f"{pair['flips']} of {n} items flip"
    if pair["answer"] == WITHIN:
        return f"{a} and {b} on {task}: no difference larger than {margin} ({span}; {changed}).{noise}"
    if pair["answer"] == NOT_DECIDABLE:
        more = f" About {pair['needed']:,} items would decide." if "needed" in pair else ""
        return (
            f"{a} and {b} on {task}: not decidable for a margin of {margin} "
            f"(difference {span}; {changed}).{more}{noise}"
        )
    end = ", which is less than the margin" if max(-pair["low"], pair["high"]) <= pair["margin"] else ""
    end += f"{_test(pair)}.{noise}"
    mine, other = pair["accuracy"], pair["baseline_accuracy"]
    if pair["measure"] == "clean":
        how = "less" if pair["answer"] == BETTER else "more"
        shares = f"{_percent(1 - mine)} against {_percent(1 - other)} of {n} texts"
        return f"{a} repeats itself {how} than {b} on {task}: {shares}{end}"
    shares = f"{_percent(mine)} against {_percent(other)} of {n} items right"
    return f"{a} is {pair['answer']} than {b} on {task}: {shares} ({span}){end}"


def _test(pair: Mapping[str, Any]) -> str:
    p = pair["p_adjusted"]
    return f"; {pair['flips']} flip, exact McNemar p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _number(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0")


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
