"""Many claims at once: Holm's own arithmetic, and that a p is where the interval begins to answer."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.compare import BETTER, NO_DIFFERENCE, Side, compare_engines, decide, family
from loadgen.compare.family import holm, p_value
from loadgen.compare.ratios import Ratio, estimated


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([], []),
        ([0.02], [0.02]),
        ([0.01, 0.02, 0.03], [0.03, 0.04, 0.04]),  # 3 x 0.01, 2 x 0.02, 1 x 0.03 but not below the one before
        ([0.03, 0.01], [0.03, 0.02]),
        ([None, 0.04, None], [None, 0.04, None]),
        ([0.6, 0.6], [1.0, 1.0]),
        ([0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_holm(p: list[float | None], adjusted: list[float | None]) -> None:
    assert holm(p) == [None if a is None else pytest.approx(a) for a in adjusted]


@given(
    st.floats(0.3, 3.0),
    st.floats(1e-3, 1.0),
    st.integers(6, 40),
    st.sampled_from([1.02, 1.05, 1.2]),
    st.data(),
)
def test_p_is_the_error_at_which_the_interval_has_an_answer(
    ratio: float, spread: float, blocks: int, margin: float, data: st.DataObject
) -> None:
    freedom = data.draw(st.one_of(st.none(), st.floats(4.0, 60.0)))
    found = estimated(math.log(ratio), spread, blocks, freedom)
    p = p_value(found, margin)
    assert p is not None
    for factor, answered in ((0.99, False), (1.01, True)):
        error = p * factor
        if 1e-9 < error < 0.999:
            bounds = found.bounds(1 - error)
            assert bounds is not None
            at = Ratio(blocks, ratio, *bounds, spread, freedom)
            assert (decide(at, margin).answer in (BETTER, NO_DIFFERENCE)) == answered


def test_a_ratio_without_an_interval_is_no_claim() -> None:
    assert p_value(Ratio(5, 2.0, spread=0.1)) is None
    assert p_value(Ratio(0)) is None
    assert p_value(Ratio(6, 2.0, 2.0, 2.0, 0.0)) == 0.0
    assert p_value(Ratio(6, 1.05, 1.0, 1.1, 0.05), 1.05) == 1.0


def test_among_many_figures_without_a_difference_hardly_any_run_claims_one() -> None:
    # Six independent figures on the margin. One interval in 40 lies beyond it by itself, so one run in seven
    # (1 - 0.975^6) would claim something somewhere; with the correction one in 40.
    rng = np.random.default_rng(11)
    names = [
        "headers_ms",
        "first_event_ms",
        "ttfa_ms",
        "chunk_gap_ms",
        "requests_per_s",
        "joules_per_request",
    ]
    ones = dict.fromkeys(names, dict.fromkeys(range(6), 1.0))
    runs, alone, together = 400, 0, 0
    for _ in range(runs):
        logs = rng.normal(math.log(1.05), 0.1, (len(names), 6))
        values = {name: dict(enumerate(np.exp(some))) for name, some in zip(names, logs, strict=True)}
        found = compare_engines([Side("a", ones), Side("b", values)])
        alone += any(c.ratio.low > 1.05 for c in found if c.ratio.low)
        together += any(c.decision.answer == BETTER for c in found)
    assert 0.08 < alone / runs < 0.22
    assert together / runs < 0.05


def test_the_example_is_true() -> None:
    assert doctest.testmod(family).failed == 0
