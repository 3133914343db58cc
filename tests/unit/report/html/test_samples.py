"""Few points, all of them exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.percentiles import rank
from loadgen.report.html.samples import MOST_POINTS, Distribution, of_counts


def thinned(samples: list[float] | np.ndarray, most: int = MOST_POINTS) -> Distribution:
    return of_counts(*np.unique(np.asarray(samples), return_counts=True), most)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(20, 100))
def test_each_point_lies_on_the_ecdf(samples: list[float], most: int) -> None:
    drawn = thinned(samples, most)
    everything = np.sort(samples)
    assert drawn.n == len(samples)
    for value, share in zip(drawn.value, drawn.share, strict=True):
        assert (everything < value).sum() < round(share * len(samples)) <= (everything <= value).sum()
    assert drawn.value[0] == everything[0]
    assert (drawn.value[-1], drawn.share[-1]) == (everything[-1], 1.0)
    assert {float(everything[rank(len(samples), p)]) for p in (50, 95, 99)} <= set(drawn.value.tolist())


def test_a_million_samples_are_some_hundred_points() -> None:
    drawn = thinned(np.random.default_rng(1).lognormal(size=1_000_000))
    assert len(drawn) <= MOST_POINTS
    assert (drawn.share >= 0.999).sum() > 20  # the tail is what a picture of it is for


def test_no_samples() -> None:
    assert len(of_counts(np.arange(3.0), np.zeros(3, dtype=np.int64))) == 0


@given(st.lists(st.integers(0, 20), min_size=1, max_size=200))
def test_counted_samples_are_the_samples(samples: list[int]) -> None:
    counted = of_counts(np.arange(21.0), np.bincount(samples, minlength=21))
    assert counted.n == len(samples)
    for value, share in zip(counted.value, counted.share, strict=True):
        assert share == pytest.approx(np.mean(np.array(samples) <= value))
