"""Statistics of paired answers against scipy, published tables and simulated truth."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loadgen.quality import paired
from loadgen.quality.paired import bootstrap, difference_interval, flips, mcnemar, score_interval, wilson


def test_docstrings() -> None:
    result = doctest.testmod(paired)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_newcombes_table_of_wilson_intervals(right: int, n: int, low: float, high: float) -> None:
    """R. G. Newcombe, Statistics in Medicine 17, 857-872 (1998), table I."""
    assert wilson(right, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 15_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(counts: tuple[int, int]) -> None:
    want = stats.binomtest(*counts).proportion_ci(0.95, method="wilson")
    assert wilson(*counts) == pytest.approx((want.low, want.high), abs=1e-9)


@given(st.integers(0, 500), st.integers(0, 500))
def test_mcnemar_is_a_sign_test_of_the_flips(b: int, c: int) -> None:
    exact, mid = mcnemar(b, c)
    if b + c:
        assert exact == pytest.approx(stats.binomtest(b, b + c).pvalue, rel=1e-6, abs=1e-12)
        point = stats.binom.pmf(b, b + c, 0.5)
        assert mid == pytest.approx(1 - point / 2 if b == c else exact - point, rel=1e-6, abs=1e-12)
    assert (exact, mid) == mcnemar(c, b)
    assert 0 <= mid <= exact <= 1


def test_airway_hyper_responsiveness() -> None:
    """Fagerland, Lydersen and Laake (2014), "Recommended tests and confidence intervals for paired binomial
    proportions": 21 children, 1 and 7 discordant."""
    assert mcnemar(1, 7) == pytest.approx((0.0703, 0.0391), abs=5e-5)
    assert score_interval(1, 7, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_without_flips_the_interval_still_has_a_width() -> None:
    """Tango's of no flip: z^2 / (n + z^2), to each side."""
    z2 = stats.norm.ppf(0.975) ** 2
    for n in (1, 20, 200, 1319):
        assert score_interval(0, 0, n) == pytest.approx((-z2 / (n + z2), z2 / (n + z2)), abs=1e-6)
        assert bootstrap(0, 0, n) == (0.0, 0.0)
        assert difference_interval(0, 0, n) == pytest.approx(score_interval(0, 0, n))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200))
def test_swapping_the_engines_swaps_the_interval(b: int, c: int, rest: int) -> None:
    n = b + c + rest
    low, high = score_interval(b, c, n)
    assert score_interval(c, b, n) == pytest.approx((-high, -low), abs=1e-9)
    if n:
        assert -1 <= low <= (b - c) / n <= high <= 1


def test_the_bootstrap_is_the_one_of_drawn_items() -> None:
    """Against scipy's, which draws the items' own differences."""
    items = np.repeat([1.0, -1.0, 0.0], [25, 12, 163])
    want = stats.bootstrap(
        (items,), np.mean, n_resamples=9999, method="percentile", rng=1
    ).confidence_interval
    assert bootstrap(25, 12, 200) == pytest.approx((want.low, want.high), abs=0.006)
    assert bootstrap(25, 12, 200) == bootstrap(25, 12, 200)


@pytest.mark.parametrize(("n", "better", "worse"), [(60, 0.10, 0.10), (200, 0.12, 0.05), (200, 0.02, 0.01)])
def test_it_covers_the_truth(n: int, better: float, worse: float) -> None:
    """95 % of the intervals of simulated exams hold the true difference, or a few more."""
    rng = np.random.default_rng(7)
    draws = rng.multinomial(n, [better, worse, 1 - better - worse], size=300)
    hits = sum(
        low <= better - worse <= high
        for low, high in (difference_interval(int(b), int(c), n) for b, c, _ in draws)
    )
    assert 0.93 <= hits / len(draws) <= 1.0


def test_flips_are_of_both_ways() -> None:
    assert flips(9, 11, 200) == 0.10
    assert flips(0, 0, 0) == 0.0
