"""What a server counted itself, averaged over turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.server_concurrency import Gauge, ServerConcurrency, server_concurrency
from loadgen.metrics.turns import Turn

S = 10**9


def turn(start_s: float, end_s: float, **more: bool) -> Turn:
    return Turn(0, 0, int(start_s * S), int(end_s * S), end_s - start_s, **more)


def gauge(*points: tuple[float, float, float]) -> Gauge:
    return Gauge.of({"t_ns": int(t * S), "running": r, "waiting": w} for t, r, w in points)


def test_only_samples_inside_turns_count() -> None:
    samples = gauge((0.5, 99, 0), (1.5, 4, 12), (2.5, 4, 10), (3.5, 4, 0), (4.5, 99, 99))
    seen = server_concurrency(samples, [turn(1, 4)])
    assert seen is not None
    assert (seen.mean, seen.samples) == (pytest.approx((16 + 14 + 4) / 3), 3)


def test_turns_weigh_by_their_length() -> None:
    # 10 requests for 1 s, 2 requests for 3 s, however often each was sampled.
    samples = gauge((0.5, 10, 0), (2.1, 2, 0), (2.2, 2, 0))
    seen = server_concurrency(samples, [turn(0, 1), turn(2, 5)])
    assert seen is not None
    assert seen.mean == pytest.approx((10 * 1 + 2 * 3) / 4)
    assert seen.error == 0


def test_rows_that_do_not_tell_are_passed_over() -> None:
    rows = [
        {"t_ns": S, "engine": "a", "error": "away"},
        {"t_ns": S, "running": 3},
        {"running": 3, "waiting": 1},
        {"t_ns": S, "running": "3", "waiting": 1},
    ]
    assert server_concurrency(Gauge.of(rows), [turn(0, 2)]) is None


def test_a_turn_whose_clock_was_set_is_left_out() -> None:
    assert server_concurrency(gauge((0.5, 1, 0)), [turn(0, 1, clock_stepped=True)]) is None
    assert server_concurrency(gauge((0.5, 1, 0)), []) is None


@pytest.mark.parametrize(
    ("mean", "error", "samples", "ours", "expected"),
    [
        (16.0, 0.1, 100, 16.0, False),
        (17.5, 0.1, 100, 16.0, False),  # within a tenth
        (24.0, 0.1, 100, 16.0, True),  # somebody else is there too
        (4.0, 0.1, 100, 16.0, True),
        (24.0, 2.0, 100, 16.0, False),  # four standard errors
        (24.0, 0.1, 9, 16.0, False),  # too few to tell
        (0.4, 0.0, 100, 0.8, False),  # half a request
    ],
)
def test_when_the_two_contradict_each_other(
    mean: float, error: float, samples: int, ours: float, expected: bool
) -> None:
    assert ServerConcurrency(mean, error, samples).contradicts(ours) is expected


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 64), st.integers(0, 64)), min_size=1),
    st.integers(1, 98),
)
def test_the_mean_lies_between_the_smallest_and_the_largest(
    points: list[tuple[int, int, int]], cut: int
) -> None:
    seen = server_concurrency(gauge(*points), [turn(0, cut), turn(cut, 100)])
    assert seen is not None
    totals = [r + w for _, r, w in points]
    assert min(totals) - 1e-9 <= seen.mean <= max(totals) + 1e-9
