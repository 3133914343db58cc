from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.percentiles import describe
from loadgen.webui.samples import Samples

VALUES = st.lists(st.floats(0.001, 1e7), min_size=1, max_size=200)


@given(VALUES)
def test_exact_as_in_the_summary(values: list[float]) -> None:
    samples, said = Samples(), describe(np.array(values))
    for v in values:
        samples.add(v)
    assert [samples.percentile(p) for p in (50, 95, 99)] == [said[f"p{p}"] for p in (50, 95, 99)]
    assert samples.mean == pytest.approx(said["mean"])


@given(VALUES)
def test_of_many_within_a_tenth_of_a_percent(values: list[float]) -> None:
    samples, said = Samples(exact=5), describe(np.array(values))
    for v in values:
        samples.add(v)
    for p in (50, 95, 99):
        assert samples.percentile(p) == pytest.approx(said[f"p{p}"], rel=1e-3)


def test_a_million_take_little_room() -> None:
    random.seed(1)
    samples = Samples(exact=100)
    for _ in range(20_000):
        samples.add(random.lognormvariate(5, 1))
    assert len(samples._buckets or {}) < 8_000
    assert samples._values == []


def test_nothing() -> None:
    assert Samples().percentile(50) is None
    assert Samples().mean is None
    zero = Samples(exact=0)
    zero.add(0.0)
    assert zero.percentile(50) == pytest.approx(0, abs=1e-5)
