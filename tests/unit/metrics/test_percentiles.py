"""Nearest rank, by InfluxQL's rule."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.percentiles import describe, rank


@pytest.mark.parametrize(
    ("n", "p", "index"),
    [
        (1, 50, 0),
        (1, 99, 0),
        (1, 1, 0),  # floor(0.01 + 0.5) - 1 is -1: kept inside
        (2, 50, 0),  # floor(1.5) - 1
        (3, 50, 1),  # floor(2.0) - 1
        (4, 50, 1),
        (5, 95, 4),  # floor(5.25) - 1
        (10, 95, 9),  # floor(10.0) - 1
        (100, 95, 94),
        (100, 99, 98),
        (50, 99, 49),  # floor(50.0) - 1
        (1000, 99, 989),
        (7, 100, 6),
    ],
)
def test_rank(n: int, p: float, index: int) -> None:
    assert rank(n, p) == index


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        rank(0, 50)
    assert describe(np.empty(0)) == {"n": 0, "mean": None, "p50": None, "p95": None, "p99": None}


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=300))
def test_a_percentile_is_the_sample_of_that_rank(values: list[float]) -> None:
    n = len(values)
    stats = describe(np.array(values))
    for p in (50, 95, 99):
        # As defined: the smallest sample such that about p % of all are not larger.
        wanted = sorted(values)[max(0, math.floor(n * p / 100 + 0.5) - 1)]
        assert stats[f"p{p}"] == wanted
    assert stats["mean"] == pytest.approx(sum(values) / n)
    counted = describe(*np.unique(values, return_counts=True))
    assert counted.pop("mean") == pytest.approx(stats.pop("mean"))
    assert counted == stats


def test_p99_of_fewer_than_a_thousand_is_rough() -> None:
    assert describe(np.arange(999.0))["p99_rough"] is True
    assert "p99_rough" not in describe(np.arange(1000.0))
