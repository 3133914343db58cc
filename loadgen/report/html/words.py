"""Words that several parts of the page use: an engine's mark, factors, what a run was made with."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from loadgen.report.html.markup import Html, tag, text
from loadgen.report.offered import is_open, load_words
from loadgen.report.plain import clean, number, plural
from loadgen.sweep.names import swept_scenario
from loadgen.workload.scenarios import SCENARIOS

# Seen well on white and on near-black (contrast 3 and more on both); blue and orange first, a pair that
# people tell apart who don't tell red from green.
PALETTE = ("#2b7fd4", "#d96c1e", "#159570", "#9b66d0", "#c2528b", "#8a7a2e")
NEUTRAL = ("#7a8794", "#9b8a6b", "#5f8f8f", "#8f7394")
BAD = "#d64545"
LONGEST_NAME = 48


def colours_of(names: Iterable[str]) -> dict[str, int]:
    """A colour's number for each engine, the same everywhere on a page. `NAME (A)`, the engine NAME in the
    first of two runs, has that of NAME."""
    names = list(dict.fromkeys(names))
    own = dict.fromkeys(name.removesuffix(" (A)") for name in names)
    number = {name: n % len(PALETTE) for n, name in enumerate(own)}
    return {name: number[name.removesuffix(" (A)")] for name in names}


def engine_mark(name: str, colours: Mapping[str, int]) -> Html:
    """An engine's name behind a square of its colour; no line ends between the two."""
    shown = clean(name, LONGEST_NAME)
    start = tag("span", tag("i", class_=f"mark e{colours.get(name, 0)}"), shown[:1], class_="start")
    return tag("span", start, text(shown[1:]), class_="engine")


def gpu_mark(n: int) -> Html:
    """The square of the n-th GPU."""
    return tag("i", class_=f"mark g{n % len(NEUTRAL)}")


def factor(value: float | None) -> str:
    """A ratio as it is read: 0.512, 1.04, 12.3."""
    if value is None:
        return "–"
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "no interval"
    return f"{factor(low)} to {factor(high)}"


def scenario_title(scenario: str, settings: Mapping[str, Any]) -> str:
    """What a run was of, in words: the scenario's own title where its users are the scenario's."""
    if is_open(settings):
        return f"{scenario.replace('_', ' ')}, {load_words(settings)[0]}"
    users = settings.get("users")
    scenario = swept_scenario(scenario, users if isinstance(users, int) else None)
    known = SCENARIOS.get(scenario)
    if known and users in (None, known.users):
        return known.title
    name = scenario.replace("_", " ")
    return f"{name}, {plural(users, 'user')}" if isinstance(users, int) else name


def moment(t_ns: int) -> str:
    """A wall time, in this machine's zone, which is named."""
    if t_ns <= 0:
        return "unknown time"
    return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(t_ns / 1e9)).strip()


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (0.4, 59.6, 61, 3600, 93784)]
    ['0.4 s', '60 s', '1 min 1 s', '1 h 0 min', '26 h 3 min']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def quantity(value: float | None, unit: str) -> str:
    return number(value) if value is None or not unit else f"{number(value)} {unit}"
