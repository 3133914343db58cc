"""What a condition adds, from paired runs whose answer is known."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from pairs import BROKEN, HOLDS, OPEN, Change, difference, order, ratio


def test_conditions_take_turns_forwards_and_backwards() -> None:
    assert [order("ABC", i) for i in range(3)] == [["A", "B", "C"], ["C", "B", "A"], ["A", "B", "C"]]


def test_what_each_pair_shares_drops_out() -> None:
    """A machine that gets slower by half over the runs, and a condition that costs 3 %."""
    off = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
    found = ratio([x * 1.03 for x in off], off)
    assert found.pairs == 6
    assert (found.mean, found.low, found.high) == pytest.approx((1.03, 1.03, 1.03))


def test_the_interval_of_a_difference_is_students() -> None:
    """1, 2, 3: mean 2, standard deviation 1, t(0.975, 2) = 4.3027 (a printed table)."""
    found = difference([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    half = 4.3027 / math.sqrt(3)
    assert (found.mean, found.low, found.high) == pytest.approx((2, 2 - half, 2 + half), abs=1e-4)


def test_too_few_pairs_have_no_interval_and_decide_nothing() -> None:
    assert difference([2.0, 2.0], [1.0, 1.0]) == Change(2, 1.0, None, None)
    assert ratio([2.0, 2.0], [1.0, 1.0]).low is None
    assert difference([2.0, 2.0], [1.0, 1.0]).against(5) == OPEN


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [(0.99, 1.04, HOLDS), (0.99, 1.05, HOLDS), (1.02, 1.08, OPEN), (1.051, 1.2, BROKEN), (1.05, 1.2, OPEN)],
)
def test_only_the_whole_interval_decides(low: float, high: float, answer: str) -> None:
    assert Change(10, (low + high) / 2, low, high).against(1.05) == answer
