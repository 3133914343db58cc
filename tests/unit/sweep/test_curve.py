"""The knee and the SLO's edge of measured points."""

from __future__ import annotations

import pytest

from loadgen.sweep.curve import Edge, Knee, flat, knee, slo_edge
from loadgen.sweep.point import MET, NOT_MET, UNDECIDED, Point


def points(**throughputs: float) -> list[Point]:
    return [Point(int(load[1:]), rate) for load, rate in throughputs.items()]


@pytest.mark.parametrize(
    ("throughputs", "is_flat"),
    [
        ({}, False),
        ({"n1": 100}, False),
        ({"n1": 100, "n2": 100}, False),  # one step may be a slow one
        ({"n1": 100, "n2": 100, "n4": 104}, True),
        ({"n1": 100, "n2": 100, "n4": 105}, False),  # the margin itself is a rise
        ({"n1": 100, "n2": 90, "n4": 106}, False),
        ({"n8": 400, "n16": 410, "n32": 380}, True),
        ({"n8": 400, "n9": 402, "n10": 404}, False),  # close steps can't rise by much
        ({"n8": 400, "n9": 402, "n10": 404, "n16": 410}, True),
        ({"n1": 100, "n2": 101, "n4": 102, "n8": 200}, False),
    ],
)
def test_flat(throughputs: dict[str, float], is_flat: bool) -> None:
    assert flat(points(**throughputs), 1.05) is is_flat
    assert flat(points(**throughputs)[::-1], 1.05) is is_flat, "in whatever order they were measured"


@pytest.mark.parametrize(
    ("throughputs", "expected"),
    [
        ({"n1": 50, "n2": 98, "n4": 100, "n8": 101, "n16": 102}, Knee(2, 1, 98)),
        ({"n1": 50, "n2": 90, "n4": 100, "n8": 101, "n16": 102}, Knee(4, 2, 100)),
        ({"n4": 100, "n8": 99, "n16": 98}, Knee(4, None, 100)),
        ({"n1": 50, "n2": 100, "n4": 200}, None),
    ],
)
def test_the_knee_is_the_lowest_load_within_the_margin_of_the_best(
    throughputs: dict[str, float], expected: Knee | None
) -> None:
    assert knee(points(**throughputs), 1.05) == expected


def test_steps_that_cannot_be_used_are_no_part_of_the_curve() -> None:
    curve = points(n1=100.0, n2=101.0, n4=102.0)
    odd = [Point(8, 500.0, believed=False), Point(16, 500.0, failing=True), Point(32, None)]
    assert knee([*curve, *odd], 1.05) == Knee(1, None, 100)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, Edge(None, None)),
        ({1: MET, 2: MET}, Edge(2, None)),
        ({1: MET, 2: MET, 4: NOT_MET}, Edge(2, 4)),
        ({1: NOT_MET}, Edge(None, 1)),
        ({1: UNDECIDED, 2: MET, 4: UNDECIDED, 8: NOT_MET}, Edge(2, 8)),
        ({1: MET, 2: NOT_MET, 4: MET}, Edge(1, 2)),  # what lies beyond a broken one is not within
    ],
)
def test_slo_edge(answers: dict[int, str], expected: Edge) -> None:
    assert slo_edge([Point(load, 1.0, slo=answer) for load, answer in answers.items()]) == expected


def test_a_load_at_which_requests_fail_is_beyond_every_slo() -> None:
    assert slo_edge([Point(1, 1.0, slo=MET), Point(2, 1.0, slo=UNDECIDED, failing=True)]) == Edge(1, 2)
