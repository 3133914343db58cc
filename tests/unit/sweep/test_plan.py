"""The planner: tables, a simulated machine, and what holds for any curve."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sweep.curve import knee, slo_edge
from loadgen.sweep.plan import Plan, Step, Stop, doubling, next_step, stopped
from loadgen.sweep.point import MET, NOT_MET, UNDECIDED, Point

Curve = Callable[[int], Point]


def machine(top: int, alone: float = 40.0, slo_until: float = float("inf")) -> Curve:
    """Throughput rises with the users up to `top` of them, then no more; the SLO holds while each user gets
    his share: up to `slo_until` users."""

    def measure(load: int) -> Point:
        return Point(load, alone * min(load, top), slo=MET if load <= slo_until else NOT_MET)

    return measure


def drive(plan: Plan, curves: dict[str, Curve]) -> tuple[list[Step], dict[str, list[Point]]]:
    """The whole sweep."""
    history: dict[str, list[Point]] = {name: [] for name in curves}
    steps: list[Step] = []
    while (step := next_step(plan, history)) is not None:
        steps.append(step)
        assert len(steps) < 1000
        for name in step.engines:
            history[name].append(curves[name](step.load))
    return steps, history


@pytest.mark.parametrize(
    ("first", "last", "loads"),
    [
        (1, 1, (1,)),
        (1, 2, (1, 2)),
        (1, 256, (1, 2, 4, 8, 16, 32, 64, 128, 256)),
        (3, 20, (3, 6, 12, 20)),
    ],
)
def test_doubling(first: int, last: int, loads: tuple[int, ...]) -> None:
    assert doubling(first, last) == loads


@pytest.mark.parametrize("loads", [(), (0, 1), (1, 1), (4, 2)])
def test_loads_that_do_not_rise_are_no_plan(loads: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="each higher"):
        Plan(loads)


def test_a_margin_is_a_factor_above_1() -> None:
    with pytest.raises(ValueError, match="above 1"):
        Plan((1, 2), margin=0.05)


def test_two_steps_beyond_the_knee_and_no_more() -> None:
    steps, history = drive(Plan(doubling(1, 256)), {"a": machine(top=16)})
    assert [s.load for s in steps] == [1, 2, 4, 8, 16, 32, 64]
    assert stopped(Plan(doubling(1, 256)), history["a"]) is Stop.FLAT
    found = knee(history["a"], 1.05)
    assert found is not None
    assert (found.load, found.below, found.throughput) == (16, 8, 640)


def test_engines_share_steps_until_each_has_enough() -> None:
    steps, _ = drive(Plan(doubling(1, 64)), {"a": machine(top=4), "b": machine(top=16)})
    assert [(s.load, s.engines) for s in steps] == [
        *((load, ("a", "b")) for load in (1, 2, 4, 8, 16)),
        (32, ("b",)),
        (64, ("b",)),
    ]


def test_the_load_is_not_raised_beyond_a_broken_slo_and_its_edge_is_searched() -> None:
    plan = Plan(doubling(1, 256), slo=True, refine=3)
    steps, history = drive(plan, {"a": machine(top=10**6, slo_until=43)})
    assert [s.load for s in steps] == [1, 2, 4, 8, 16, 32, 64, 48, 40, 44]
    assert [s.searching for s in steps] == [False] * 7 + [True] * 3
    edge = slo_edge(history["a"])
    assert (edge.within, edge.broken) == (40, 44)


def test_the_knee_is_searched_where_there_is_no_slo() -> None:
    steps, history = drive(Plan(doubling(1, 256), refine=2), {"a": machine(top=11)})
    assert [s.load for s in steps] == [1, 2, 4, 8, 16, 32, 64, 12, 10]
    found = knee(history["a"], 1.05)
    assert found is not None
    assert (found.load, found.below) == (12, 10)


def test_searches_of_the_same_load_are_one_step() -> None:
    plan = Plan((1, 2, 4, 8), slo=True, refine=1)
    curves = {
        "a": machine(10**6, slo_until=5),
        "b": machine(10**6, slo_until=7),
        "c": machine(10**6, slo_until=3),
    }
    steps, _ = drive(plan, curves)
    assert steps[-2:] == [Step(3, ("c",), True), Step(6, ("a", "b"), True)]


def test_an_edge_that_is_near_enough_is_left_alone() -> None:
    steps, _ = drive(Plan((100, 108), slo=True, refine=5), {"a": machine(10**6, slo_until=104)})
    assert [s.load for s in steps] == [100, 108]


def test_a_load_that_could_not_be_decided_is_not_measured_again() -> None:
    answers = {1: MET, 2: NOT_MET, 4: NOT_MET}
    plan = Plan((1, 4), slo=True, refine=5)
    steps, _ = drive(plan, {"a": lambda n: Point(n, float(n), slo=answers.get(n, UNDECIDED))})
    assert [s.load for s in steps] == [1, 4, 2]
    answers[2] = UNDECIDED
    steps, _ = drive(plan, {"a": lambda n: Point(n, float(n), slo=answers[n])})
    assert [s.load for s in steps] == [1, 4, 2]


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (Point(4, 100.0, failing=True, believed=False), Stop.FAILING),
        (Point(4, 100.0, slo=NOT_MET), Stop.SLO),
        (Point(4, 100.0, believed=False), Stop.UNBELIEVED),
        (Point(4, 100.0), None),
    ],
)
def test_why_an_engine_drops_out(last: Point, why: Stop | None) -> None:
    before = Point(2, 50.0, believed=why is not Stop.UNBELIEVED)
    assert stopped(Plan((1, 2, 4, 8), slo=True), [Point(1, 25.0), before, last]) is why


def test_one_step_that_cannot_be_believed_ends_nothing() -> None:
    def measure(load: int) -> Point:
        return Point(load, float(load), believed=load != 4)

    steps, _ = drive(Plan(doubling(1, 16)), {"a": measure})
    assert [s.load for s in steps] == [1, 2, 4, 8, 16]


def test_all_steps_if_asked_whatever_they_say() -> None:
    plan = Plan(doubling(1, 64), slo=True, stop=False)
    steps, history = drive(plan, {"a": machine(top=4, slo_until=2)})
    assert [s.load for s in steps] == list(plan.loads)
    assert stopped(plan, history["a"]) is Stop.TOP


def test_it_goes_on_where_it_was_ended() -> None:
    plan, curves = Plan(doubling(1, 64), refine=2), {"a": machine(top=5), "b": machine(top=20)}
    whole, _ = drive(plan, curves)
    for done in range(len(whole)):
        history = {name: [curves[name](s.load) for s in whole[:done] if name in s.engines] for name in curves}
        assert next_step(plan, history) == whole[done]


@given(
    loads=st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True).map(sorted),
    rates=st.lists(st.one_of(st.none(), st.floats(0.1, 1e5)), min_size=1, max_size=20),
    answers=st.lists(st.sampled_from([MET, NOT_MET, UNDECIDED]), min_size=1, max_size=20),
    believed=st.lists(st.booleans(), min_size=1, max_size=20),
    slo=st.booleans(),
    refine=st.integers(0, 6),
    stop=st.booleans(),
)
def test_any_sweep_ends_and_measures_nothing_twice(
    loads: list[int],
    rates: list[float | None],
    answers: list[str],
    believed: list[bool],
    slo: bool,
    refine: int,
    stop: bool,
) -> None:
    def measure(load: int) -> Point:
        return Point(
            load,
            rates[load % len(rates)],
            slo=answers[load % len(answers)] if slo else None,
            believed=believed[load % len(believed)],
        )

    plan = Plan(tuple(loads), slo=slo, refine=refine, stop=stop)
    steps, history = drive(plan, {"a": measure, "b": measure})
    measured = [p.load for p in history["a"]]
    assert len(measured) == len(set(measured))
    assert history["a"] == history["b"], "engines that are alike are never measured apart"
    assert all(loads[0] <= s.load <= loads[-1] for s in steps)
    raised = [s.load for s in steps if not s.searching]
    assert raised == loads[: len(raised)]
    assert len(steps) - len(raised) <= refine
    if not stop:
        assert raised == loads


def test_rates_may_be_fractions_and_their_edge_is_searched_between_them() -> None:
    plan = Plan((0.5, 1.0, 2.0), slo=True, refine=2, variable="rate")
    points = [Point(0.5, 10.0, slo=MET), Point(1.0, 20.0, slo=MET), Point(2.0, 22.0, slo=NOT_MET)]
    assert next_step(plan, {"a": points}) == Step(1.5, ("a",), searching=True)
    with pytest.raises(ValueError, match="whole numbers"):
        Plan((0.5, 1.0))
