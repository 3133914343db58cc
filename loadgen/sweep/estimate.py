"""How long the steps that may come will take, by those that are done. Pure.

A turn of r requests takes r / (requests per second). From one load to the next the rate grows as it did from
the load before, (n / n0) ** e with e the elasticity seen there, between 0 and 1; everything else of a step
(start, warm-up, cool-downs) takes as long as in the last one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.sweep.plan import Plan, stopped
from loadgen.sweep.point import Point


@dataclass(frozen=True, slots=True)
class Pace:
    """What the steps so far say of time: `turns` is the number of turns an engine has in a step, `requests`
    gives the requests of a turn at a load, `rates` each engine's requests per second by load, `other_s` the
    seconds of the last step that were not measured."""

    turns: int
    requests: Callable[[float], int]
    rates: Mapping[str, Mapping[float, float]]
    other_s: float = 0.0

    def step_s(self, load: float, engines: Sequence[str]) -> float | None:
        """Seconds of a step; None while nothing is known of one of its engines."""
        total = self.other_s
        for name in engines:
            rate = expected_rate(self.rates.get(name, {}), load)
            if rate is None:
                return None
            total += self.turns * self.requests(load) / rate
        return total

    def raising_s(self, plan: Plan, history: Mapping[str, Sequence[Point]]) -> float | None:
        """Seconds until every engine that still rises has been at the highest load: what the raising takes
        at most, if none drops out. None while nothing is known."""
        raising = [name for name, points in history.items() if stopped(plan, points) is None]
        total = 0.0
        for load in plan.loads:
            todo = [n for n in raising if load not in {p.load for p in history[n]}]
            if todo:
                seconds = self.step_s(load, todo)
                if seconds is None:
                    return None
                total += seconds
        return total


def expected_rate(rates: Mapping[float, float], load: float) -> float | None:
    """Requests per second at a load, from those at lower ones (or else the nearest); None of nothing.

    >>> expected_rate({8: 1.0, 16: 1.5}, 32)
    2.25
    """
    known = sorted((n, r) for n, r in rates.items() if r > 0)
    if not known:
        return None
    lower = [pair for pair in known if pair[0] <= load]
    if not lower:
        return known[0][1] * load / known[0][0]
    last_load, last = lower[-1]
    elasticity = 1.0
    if len(lower) > 1:
        before_load, before = lower[-2]
        elasticity = min(1.0, max(0.0, math.log(last / before) / math.log(last_load / before_load)))
    grown: float = last * (load / last_load) ** elasticity
    return grown
