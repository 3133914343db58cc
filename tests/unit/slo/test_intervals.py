"""Intervals against published tables, against each other, and against samples whose truth is known."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.slo import intervals
from loadgen.slo.intervals import design_effect, enough, mean_interval, percentile_interval, share_interval


def test_docstrings() -> None:
    result = doctest.testmod(intervals)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.parametrize(("n", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (100, 40, 61)])
def test_ranks_of_the_median(n: int, low: int, high: int) -> None:
    """The tables of nonparametric textbooks (sign test), 95 %."""
    assert percentile_interval(np.arange(1.0, n + 1), 50) == (low, high)


@pytest.mark.parametrize(("p", "least"), [(50, 6), (95, 72), (99, 368), (99.9, 3688)])
def test_so_many_samples_a_bound_above_takes(p: float, least: int) -> None:
    """ln(0.025) / ln(p), rounded up: with fewer even the largest sample may lie below the percentile."""
    assert percentile_interval(np.arange(1.0, least + 1), p)[1] == least
    assert percentile_interval(np.arange(1.0, least), p)[1] is None


def test_a_lower_bound_may_be_missing_as_well() -> None:
    assert percentile_interval(np.arange(1.0, 11.0), 5) == (None, 3.0)
    assert percentile_interval(np.array([1.0]), 50, effect=2) == (None, None)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0.0, 0.3085), (1, 20, 0.00127, 0.2487), (50, 100, 0.3983, 0.6017), (10, 10, 0.6915, 1.0)],
)
def test_clopper_and_pearson(hits: int, of: int, low: float, high: float) -> None:
    assert share_interval(hits, of) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 400), st.data())
def test_a_percentile_is_beyond_a_limit_where_the_share_below_it_is(n: int, data: st.DataObject) -> None:
    """The two intervals are two sides of one: X(u) < L says the same as low(share below L) >= p."""
    below = data.draw(st.integers(0, n))
    p = data.draw(st.sampled_from([5, 50, 90, 95, 99]))
    samples = np.concatenate((np.zeros(below), np.ones(n - below)))
    _, high = percentile_interval(samples, p)
    assert (high == 0) == (share_interval(below, n)[0] >= p / 100)


def test_design_effect() -> None:
    assert design_effect([5, 5, 5, 5], [10, 10, 10, 10]) == 1  # less than chance is no credit
    # Two turns of 10, all hits in one: variance 2 (25 + 25) / 20^2 = 0.25 instead of 0.25 / 20.
    assert design_effect([10, 0], [10, 10]) == pytest.approx(20)
    assert design_effect([3], [10]) == design_effect([0, 0], [10, 10]) == design_effect([], []) == 1


def test_a_design_effect_makes_intervals_wider() -> None:
    samples = np.arange(1.0, 401.0)
    low, high = percentile_interval(samples, 50, effect=4)
    assert (low, high) == (160, 244)  # ranks 40 and 61 of 100, times 4
    assert share_interval(20, 400, effect=4) == share_interval(5, 100)


def test_a_mean_of_turns() -> None:
    """t(0.975, 2) = 4.303; logarithms -0.1, 0, 0.1 have the standard deviation 0.1."""
    turns = [100 * math.exp(v) for v in (-0.1, 0, 0.1)]
    half = math.exp(4.3027 * 0.1 / math.sqrt(3))
    assert mean_interval(100, turns) == pytest.approx((100 / half, 100 * half), rel=1e-4)
    assert mean_interval(100, [100.0]) == mean_interval(0, [0.0, 1.0]) == (None, None)


def test_enough() -> None:
    assert enough(1.0, 0.95) == 73  # 1.96^2 x 0.95 / 0.05
    assert enough(1.0, 0.99) == 381  # 1.96^2 x 0.99 / 0.01
    assert enough(0.97, 0.95, effect=2) == 913  # 2 x 1.96^2 x 0.0475 / 0.0004
    assert enough(0.95, 0.95) is None
    assert enough(0.950001, 0.95) is None


def test_of_many_runs_with_a_known_truth_the_interval_covers_it() -> None:
    """TTFT of 6 turns of 64 requests, turns apart by 10 %: without the effect it is too narrow."""
    draw = np.random.default_rng(7)
    covered = {True: 0, False: 0}
    for _ in range(400):
        of_turn = draw.normal(0, 0.1, 6)
        turns = [np.exp(draw.normal(m, 0.1, 64)) for m in of_turn]
        samples = np.sort(np.concatenate(turns))
        effect = design_effect([int((t < 1).sum()) for t in turns], [64] * 6)
        for used in covered:
            low, high = percentile_interval(samples, 50, effect if used else 1.0)
            assert low is not None
            assert high is not None
            covered[used] += low <= 1 <= high
    assert covered[False] < 0.5 * 400
    assert covered[True] > 0.85 * 400
