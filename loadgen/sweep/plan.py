"""Which load is measured next, from the results so far. Pure: a sweep that is resumed goes on by itself.

First the load is raised step by step, for all engines together, so that they take turns within a step; an
engine drops out when its throughput has stopped rising, its SLO is broken or its requests fail. Then, if
asked, each engine's edge is searched between two measured loads: that of the SLO where there is one, else the
knee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from loadgen.sweep.curve import flat, knee, slo_edge
from loadgen.sweep.names import USERS
from loadgen.sweep.point import NOT_MET, Point

CLOSE_ENOUGH = 1.1  # an edge that is known to a tenth is not searched any further


class Stop(Enum):
    """Why an engine's load is not raised any further."""

    FAILING = "failing"
    SLO = "slo"
    UNBELIEVED = "unbelieved"
    FLAT = "flat"
    TOP = "top"


@dataclass(frozen=True, slots=True)
class Plan:
    """`loads` are the steps, rising. `margin` is the factor by which throughput must rise. `slo`: whether
    there is one. `refine` is the largest number of steps an engine's edge is searched with. `stop`: engines
    drop out; False measures them at every load. `variable` is what the loads are: USERS, or a RATE. Raises
    ValueError for loads that don't rise."""

    loads: tuple[float, ...]
    margin: float = 1.05
    slo: bool = False
    refine: int = 0
    stop: bool = True
    variable: str = USERS

    def __post_init__(self) -> None:
        if not self.loads or self.loads[0] <= 0 or any(a >= b for a, b in pairwise(self.loads)):
            raise ValueError("the loads of a sweep are numbers above 0, each higher than the one before")
        if self.variable == USERS and any(load != int(load) for load in self.loads):
            raise ValueError("users are whole numbers from 1 on, each higher than the one before")
        if self.margin <= 1:
            raise ValueError("the margin of a sweep is a factor above 1")


@dataclass(frozen=True, slots=True)
class Step:
    """One run: this load, on these engines. `searching`: it lies between two loads that were measured."""

    load: float
    engines: tuple[str, ...]
    searching: bool = False


def doubling(first: int, last: int) -> tuple[int, ...]:
    """From the first load to the last, doubled each time; the last is always among them.

    >>> doubling(1, 20), doubling(6, 6)
    ((1, 2, 4, 8, 16, 20), (6,))
    """
    loads: list[int] = []
    while first < last:
        loads.append(first)
        first *= 2
    return (*loads, last)


def stopped(plan: Plan, points: Sequence[Point]) -> Stop | None:
    """Why the engine with these results dropped out of the raising; None: it goes on."""
    raised = sorted((p for p in points if p.load in plan.loads), key=lambda p: p.load)
    if raised and plan.stop:
        if raised[-1].failing:
            return Stop.FAILING
        if raised[-1].slo == NOT_MET:
            return Stop.SLO
        if len(raised) > 1 and not raised[-1].believed and not raised[-2].believed:
            return Stop.UNBELIEVED
        if flat(raised, plan.margin):
            return Stop.FLAT
    return Stop.TOP if len(raised) == len(plan.loads) else None


def next_step(plan: Plan, history: Mapping[str, Sequence[Point]]) -> Step | None:
    """The next step, None when the sweep is over. `history` has every engine, also one without results."""
    raising = {name: _next_raised(plan, p) for name, p in history.items() if stopped(plan, p) is None}
    if raising:
        return _lowest(raising)
    edges = {name: load for name, p in history.items() if (load := _next_searched(plan, p)) is not None}
    return _lowest(edges, searching=True) if edges else None


def _lowest(loads: Mapping[str, float], *, searching: bool = False) -> Step:
    load = min(loads.values())
    return Step(load, tuple(name for name, own in loads.items() if own == load), searching)


def _next_raised(plan: Plan, points: Sequence[Point]) -> float:
    measured = {p.load for p in points}
    return next(load for load in plan.loads if load not in measured)


def _next_searched(plan: Plan, points: Sequence[Point]) -> float | None:
    """Halfway between the two loads that bound the edge; None if it is near enough, or not to be had."""
    measured = {p.load for p in points}
    if len(measured - set(plan.loads)) >= plan.refine:
        return None
    below: float | None
    above: float | None
    if plan.slo:
        edge = slo_edge(points)
        below, above = edge.within, edge.broken
    else:
        found = knee(points, plan.margin)
        below, above = (found.below, found.load) if found else (None, None)
    if below is None or above is None or above <= below * CLOSE_ENOUGH:
        return None
    middle = (below + above) // 2 if plan.variable == USERS else float(f"{(below + above) / 2:.3g}")
    return None if middle in measured or middle == below else middle
