from __future__ import annotations

import pytest

from loadgen.sweep.estimate import Pace, expected_rate
from loadgen.sweep.plan import Plan
from loadgen.sweep.point import Point


@pytest.mark.parametrize(
    ("rates", "load", "expected"),
    [
        ({}, 4, None),
        ({1: 0.0}, 4, None),
        ({1: 2.0}, 4, 8.0),  # of one point nothing is known but that it may rise
        ({1: 2.0, 2: 4.0}, 8, 16.0),
        ({1: 2.0, 2: 3.0}, 4, 4.5),
        ({1: 2.0, 2: 2.0}, 8, 2.0),
        ({1: 2.0, 2: 1.0}, 8, 1.0),  # what falls is not taken to fall on
        ({1: 2.0, 2: 5.0}, 4, 10.0),  # nor does anything rise faster than the users
        ({8: 4.0}, 2, 1.0),
    ],
)
def test_expected_rate(rates: dict[int, float], load: int, expected: float | None) -> None:
    assert expected_rate(rates, load) == (None if expected is None else pytest.approx(expected))


def pace(**rates: dict[int, float]) -> Pace:
    return Pace(turns=2, requests=lambda n: 4 * n, rates=rates, other_s=10.0)


def test_a_step_takes_its_turns_and_what_is_around_them() -> None:
    # 2 turns of 16 requests: 2 x 16 / 4 s for a, 2 x 16 / 2 s for b.
    assert pace(a={4: 4.0}, b={4: 2.0}).step_s(4, ["a", "b"]) == pytest.approx(10 + 8 + 16)
    assert pace(a={4: 4.0}).step_s(4, ["a", "b"]) is None


def test_raising_to_the_end_counts_what_is_left_of_each_engine() -> None:
    plan = Plan((4, 8, 16))
    history = {"a": [Point(4, 40.0)], "b": [Point(4, 20.0, failing=True)]}
    # a at 8 users: 2 x 32 requests at 8 a second; at 16 users: 2 x 64 at 16.
    assert pace(a={4: 4.0}, b={4: 2.0}).raising_s(plan, history) == pytest.approx(10 + 8 + 10 + 8)
    assert pace().raising_s(plan, {"a": []}) is None
    assert pace(a={4: 4.0}).raising_s(Plan((4,)), {"a": [Point(4, 40.0)]}) == 0.0
