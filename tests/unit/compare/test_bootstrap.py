"""Percentiles of pooled blocks, against sorting everything; their intervals, against what is known."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.compare.bootstrap import (
    draws,
    log_percentiles,
    paired_percentiles,
    pooled,
    unpaired_percentiles,
)
from loadgen.compare.ratios import Ratio
from loadgen.compare.samples import Sample
from loadgen.metrics.percentiles import describe


def sample(values: Sequence[float]) -> Sample:
    found, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return Sample(found, counts)


def test_draws_take_as_many_blocks_as_there_are_and_begin_with_the_run_itself() -> None:
    weights = draws(7)
    assert weights[0].tolist() == [1] * 7
    assert (weights.sum(axis=1) == 7).all()
    assert weights[1:].mean(axis=0) == pytest.approx(np.ones(7), abs=0.1)
    assert weights.tolist() == draws.__wrapped__(7).tolist()  # the same every time


blocks_of_times = st.lists(
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0, 100.0]), min_size=1, max_size=12),
    min_size=1,
    max_size=5,
)


@given(blocks_of_times, st.integers(0, 2**32 - 1))
def test_pooled_percentiles_are_those_of_all_samples_of_a_draw(blocks: list[list[float]], seed: int) -> None:
    n = len(blocks)
    weights = np.random.default_rng(seed).multinomial(n, [1 / n] * n, size=4)
    found = pooled([sample(b) for b in blocks], weights, (50, 95, 99))
    for k, weight in enumerate(weights):
        everything = [x for b, times in zip(blocks, weight, strict=True) for x in b * int(times)]
        stats = describe(np.array(everything))
        assert found[:, k].tolist() == [stats["p50"], stats["p95"], stats["p99"]]


def scaled(factors: Sequence[float], shape: Sequence[float] = tuple(range(1, 101))) -> dict[int, Sample]:
    return {k: sample(f * np.asarray(shape)) for k, f in enumerate(factors)}


def test_what_a_block_does_to_both_drops_out() -> None:
    base = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2]
    for found in paired_percentiles(scaled([2 * f for f in base]), scaled(base), (50, 95)):
        assert (found.blocks, found.ratio) == (6, pytest.approx(2))
        assert found.low == pytest.approx(2)
        assert found.high == pytest.approx(2)


def test_blocks_are_laid_over_each_other() -> None:
    # Levels 1, 4 and 16, of the geometric mean 4; each block is its level x (1/4, 1, 1, 4).
    blocks = [sample([k / 4, k, k, 4 * k]) for k in (1.0, 4.0, 16.0)]
    once = np.array([[1, 1, 1]])
    logs = log_percentiles(blocks, once, (25, 50, 99))
    assert np.exp(logs[:, 0]) == pytest.approx([1, 4, 16])
    # Pooled as they are, the block of the highest level alone would be the 99th percentile.
    assert pooled(blocks, once, (99,))[0, 0] == 64
    # Samples of 0 have no part in a level, and stay 0.
    zeros = [sample([0, 0, 0, k]) for k in (1.0, 4.0)]
    assert np.exp(log_percentiles(zeros, np.array([[1, 1]]), (50, 99)))[:, 0] == pytest.approx([0, 2])


def test_the_spread_is_that_of_all_possible_draws() -> None:
    factors = [0.8, 0.95, 1.0, 1.1, 1.2, 1.5]
    mine = scaled(factors)
    every = np.array([np.bincount(draw, minlength=6) for draw in itertools.product(range(6), repeat=6)])
    logs = log_percentiles(list(mine.values()), every, (50,))[0]
    found = paired_percentiles(mine, scaled([1.0] * 6), (50,))[0]
    # Standard error x sqrt(n / (n - 1)), and the spread is that x sqrt(n).
    assert found.spread == pytest.approx(logs.std() * math.sqrt(6 / 5) * math.sqrt(6), rel=0.04)
    half = 2.571 * found.spread / math.sqrt(6)  # type: ignore[operator]
    assert found.high / found.ratio == pytest.approx(math.exp(half), rel=1e-3)  # type: ignore[operator]
    assert found.ratio / found.low == pytest.approx(math.exp(half), rel=1e-3)  # type: ignore[operator]


@pytest.mark.parametrize("ratios", [paired_percentiles, unpaired_percentiles])
def test_few_blocks_have_no_interval_and_none_no_ratio(ratios) -> None:  # type: ignore[no-untyped-def]
    five = ratios(scaled([3.0] * 5), scaled([1.5] * 5), (50,))[0]
    assert (five.blocks, five.ratio, five.low) == (5, pytest.approx(2), None)
    assert ratios({}, scaled([1.0] * 6), (50, 95)) == [Ratio(0), Ratio(0)]
    one = ratios(scaled([3.0]), scaled([1.5]), (50,))[0]
    assert (one.blocks, one.low, one.spread) == (1, None, None)
    # A percentile of 0 ms (events that came together) has no ratio.
    assert ratios(scaled([1.0] * 6, [0, 0, 5]), scaled([1.0] * 6), (50,)) == [Ratio(0)]


def test_only_shared_blocks_are_paired() -> None:
    mine = {**scaled([2.0] * 6), 9: sample([1e9])}
    found = paired_percentiles(mine, scaled([1.0] * 7), (50,))[0]
    assert (found.blocks, found.ratio, found.spread) == (6, pytest.approx(2), pytest.approx(0, abs=1e-12))


def test_unpaired_blocks_know_of_both_sides() -> None:
    base = [1.0, 1.3, 0.8, 1.1, 0.9, 1.2]
    mine = scaled([2 * f for f in base])
    apart = unpaired_percentiles(mine, scaled(base), (50,))[0]
    steady = unpaired_percentiles(mine, scaled([1.0] * 8), (50,))[0]
    assert apart.ratio == pytest.approx(2)
    assert apart.freedom == pytest.approx(10, abs=1)  # alike: Welch's is that of both together
    assert steady.freedom == pytest.approx(5)  # one side alone is uncertain
    assert (steady.blocks, apart.blocks) == (6, 6)
    assert apart.spread == pytest.approx(2**0.5 * steady.spread, rel=0.1)  # type: ignore[operator]
