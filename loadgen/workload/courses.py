"""Courses: what leads one turn through its shape, from what is seen on the way. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loadgen.sweep.plan import Plan, doubling, next_step
from loadgen.sweep.point import Point
from loadgen.workload.shapes import HAND, KNEE, Shape

SETTLE = 0.25  # of a level: what the load before it has left behind is not counted
REFINE = 2
_ENGINE = ""  # there is only one


@dataclass(frozen=True, slots=True)
class Seen:
    """`asked` users were asked for by hand, `users` have work; `events` have been read of the engine."""

    users: int
    events: int
    asked: int = 0


class Course(Protocol):
    """`title` names the part of the shape that goes on."""

    title: str

    def users(self, t_s: float, seen: Seen) -> int | None:
        """How many users there shall be `t_s` seconds after the start; None when the turn is over. Asked
        several times a second, with rising times."""
        ...


class Planned:
    """A shape that is known beforehand."""

    def __init__(self, shape: Shape) -> None:
        self.title = shape.segments[0].title
        self._shape = shape

    def users(self, t_s: float, seen: Seen) -> int | None:
        found = self._shape.segment_at(t_s)
        if found is None:
            return None
        segment, inside_s = found
        self.title = segment.title
        return segment.users_at(inside_s)


class ByHand:
    """As many as somebody asks for, until it is stopped."""

    title = ""

    def users(self, t_s: float, seen: Seen) -> int | None:
        self.title = _users(seen.asked)
        return seen.asked


class Search:
    """Looks for the knee: as `loadgen sweep` does it, but within one turn. A level begins when its users are
    there (or have not come for as long as it should last), and its throughput is that of all but its first
    quarter, in events a second."""

    def __init__(self, shape: Shape) -> None:
        self._plan = Plan(doubling(shape.first, shape.peak), refine=REFINE)
        self._level_s = shape.level_s
        self.points: list[Point] = []
        self._load = shape.first
        self._asked_s: float | None = None
        self._began_s: float | None = None
        self._mark: tuple[float, int] | None = None
        self.title = _users(self._load)

    def users(self, t_s: float, seen: Seen) -> int | None:
        if self._asked_s is None:
            self._asked_s = t_s
        if self._began_s is None:
            if seen.users != self._load and t_s < self._asked_s + self._level_s:
                return self._load
            self._began_s = t_s
        if self._mark is None and t_s >= self._began_s + SETTLE * self._level_s:
            self._mark = t_s, seen.events
        if t_s < self._began_s + self._level_s or self._mark is None or t_s <= self._mark[0]:
            return self._load
        since_s, events = self._mark
        self.points.append(Point(self._load, (seen.events - events) / (t_s - since_s)))
        step = next_step(self._plan, {_ENGINE: self.points})
        if step is None:
            return None
        self._load = int(step.load)
        self.title = _users(self._load)
        self._asked_s, self._began_s, self._mark = t_s, None, None
        return self._load


def course_of(shape: Shape) -> Course:
    """For one turn. (A person's own LoadTestShape is loadgen.users.shapes' to lead.)"""
    if shape.kind == HAND:
        return ByHand()
    return Search(shape) if shape.kind == KNEE else Planned(shape)


def _users(number: int) -> str:
    return f"{number} user{'' if number == 1 else 's'}"
