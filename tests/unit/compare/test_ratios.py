"""Ratios and intervals against a table of Student's t, and against what they promise."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.compare.ratios import Ratio, half_width, paired_ratio, unpaired_ratio

# Quantiles of Student's t at 97.5 %, from a printed table.
T_TABLE = {2: 4.303, 5: 2.571, 7: 2.365, 11: 2.201, 30: 2.042}


@pytest.mark.parametrize(("freedom", "t"), T_TABLE.items())
def test_half_width_is_students(freedom: int, t: float) -> None:
    assert half_width(1.0, freedom + 1) == pytest.approx(t / math.sqrt(freedom + 1), rel=3e-4)


def test_six_blocks_by_hand() -> None:
    # Logs of the ratios: ln 2 + (-0.1, 0, 0.1, -0.1, 0, 0.1). Mean ln 2, variance 0.04 / 5.
    logs = (-0.1, 0.0, 0.1, -0.1, 0.0, 0.1)
    base = {k: 10.0 * (k + 1) for k in range(6)}
    values = {k: base[k] * 2 * math.exp(x) for k, x in enumerate(logs)}
    got = paired_ratio(values, base)
    half = 2.571 * math.sqrt(0.04 / 5) / math.sqrt(6)
    assert got.blocks == 6
    assert got.ratio == pytest.approx(2)
    assert got.low == pytest.approx(2 * math.exp(-half), rel=1e-4)
    assert got.high == pytest.approx(2 * math.exp(half), rel=1e-4)


def test_only_blocks_that_both_have_count() -> None:
    assert paired_ratio({0: 1.0, 1: 8.0}, {1: 2.0, 2: 5.0}) == Ratio(1, pytest.approx(4.0))
    assert paired_ratio({}, {1: 2.0}) == Ratio(0)
    assert paired_ratio({0: 0.0, 1: math.nan, 2: math.inf}, {0: 1.0, 1: 1.0, 2: 1.0}) == Ratio(0)


def test_too_few_blocks_have_a_ratio_and_no_interval() -> None:
    five = paired_ratio(dict.fromkeys(range(5), 3.0), dict.fromkeys(range(5), 1.5))
    assert (five.blocks, five.low, five.high) == (5, None, None)
    assert five.ratio == pytest.approx(2)
    assert paired_ratio(dict.fromkeys(range(6), 3.0), dict.fromkeys(range(6), 1.5)).low == pytest.approx(2)


def test_welch_by_hand() -> None:
    # Logs of 6 values around ln 3 and of 8 around 0. Squared standard errors 0.008 / 6 and 0.32 / 7 / 8.
    logs = (-0.1, 0.0, 0.1, -0.1, 0.0, 0.1)
    base = (-0.2, 0.2) * 4
    got = unpaired_ratio(
        {k: 3 * math.exp(x) for k, x in enumerate(logs)}, {k: math.exp(x) for k, x in enumerate(base)}
    )
    one, other = 0.008 / 6, 0.32 / 7 / 8
    freedom = (one + other) ** 2 / (one**2 / 5 + other**2 / 7)
    assert (got.blocks, got.ratio) == (6, pytest.approx(3))
    assert got.freedom == pytest.approx(freedom)  # 9.9
    # Student's t of 9 degrees of freedom is 2.262 in the table, of 10 it is 2.228.
    assert 2.228 < math.log(got.high / 3) / math.sqrt(one + other) < 2.262  # type: ignore[operator]
    assert got.low * got.high == pytest.approx(9)  # type: ignore[operator]


def test_unpaired_few_blocks_and_none() -> None:
    ones = dict.fromkeys(range(6), 1.0)
    assert unpaired_ratio({}, ones) == Ratio(0)
    assert unpaired_ratio({0: 2.0}, ones) == Ratio(1, pytest.approx(2.0))
    five = unpaired_ratio(dict.fromkeys(range(5), 2.0), ones)
    assert (five.blocks, five.ratio, five.low, five.spread) == (5, pytest.approx(2), None, 0.0)
    assert unpaired_ratio(dict.fromkeys(range(6), 2.0), ones).freedom == 10


@given(st.floats(0.1, 10), st.floats(0, 1), st.integers(6, 30), st.sampled_from([None, 7.5]))
def test_bounds_are_the_interval_and_turn_round(
    ratio: float, spread: float, blocks: int, freedom: float | None
) -> None:
    half = half_width(spread, blocks, freedom=freedom)
    found = Ratio(blocks, ratio, ratio * math.exp(-half), ratio * math.exp(half), spread, freedom)
    assert found.bounds() == (pytest.approx(found.low), pytest.approx(found.high))
    assert found.inverse().bounds() == (pytest.approx(1 / found.high), pytest.approx(1 / found.low))  # type: ignore[operator]
    narrow, wide = found.bounds(0.5), found.bounds(0.99)
    assert narrow is not None
    assert wide is not None
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    assert Ratio(3, 2.0, spread=0.1).bounds() is None


values = st.dictionaries(st.integers(0, 20), st.floats(0.01, 1e6), min_size=1)


@given(values, values)
def test_the_other_way_round_is_the_inverse(a: dict[int, float], b: dict[int, float]) -> None:
    there, back = paired_ratio(a, b), paired_ratio(b, a)
    assert there.blocks == back.blocks
    if there.ratio is not None and back.ratio is not None:
        assert there.ratio * back.ratio == pytest.approx(1)
    if there.low is not None and there.high is not None and back.high is not None:
        assert there.low * back.high == pytest.approx(1)
        assert there.low <= there.high


@pytest.mark.parametrize("blocks", [6, 8, 12])
def test_the_interval_covers_the_truth_as_often_as_it_says(blocks: int) -> None:
    # 64 requests a turn whose times are correlated: a part that both engines share in a block (the machine),
    # a part that all requests of one turn share, and their own.
    rng = np.random.default_rng(7)
    truth, runs, covered = 1.2, 1000, 0
    for _ in range(runs):
        shared = rng.normal(0, 0.1, blocks)

        def turn_means(scale: float, shared: np.ndarray = shared) -> dict[int, float]:  # type: ignore[type-arg]
            own = rng.normal(0, 0.02, blocks)
            noise = rng.normal(0, 0.1, (blocks, 64))
            times = scale * np.exp(shared[:, None] + own[:, None] + noise)
            return dict(enumerate(times.mean(axis=1)))

        got = paired_ratio(turn_means(truth), turn_means(1.0))
        assert got.low is not None
        assert got.high is not None
        covered += got.low <= truth <= got.high
    assert 0.93 <= covered / runs <= 0.97
