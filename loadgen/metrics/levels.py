"""Figures of a turn in which the number of users varied, for each number of them.

A stretch is a time in which as many users had work as were asked for, from the events of the run. A level is
the stretches with the same number of users, of all turns; where there are more than MOST of them (a ramp),
neighbouring numbers make one level. A request belongs to the level in which it was sent; throughput,
concurrency and requests per second are of what happened in the level's time (metrics/window.py), so a level's
beginning still has requests of the one before. What lay between stretches, while users came or went, is in
no level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.metrics.columns import Bools, Columns, Ints
from loadgen.metrics.e2e import E2E
from loadgen.metrics.percentiles import describe
from loadgen.metrics.tpot import TPOT
from loadgen.metrics.ttft import TTFT
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import measure, total
from loadgen.record import FAILED, OK
from loadgen.store.events import USERS
from loadgen.sweep.curve import knee
from loadgen.sweep.point import Point

MOST = 12
MARGIN = 1.05
FIGURES = (TTFT(), TPOT(), E2E())


@dataclass(frozen=True, slots=True)
class Stretch:
    """So many users from `start_ns` to `end_ns` (wall) in a turn; `seconds` by the monotonic clock."""

    users: int
    turn: int
    start_ns: int
    end_ns: int
    seconds: float


def find_stretches(engine: str, events: Iterable[Mapping[str, Any]], turns: Sequence[Turn]) -> list[Stretch]:
    """In order. None of a run whose users did not vary; events that make no sense are passed over."""
    marks: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        if event.get("kind") == USERS and event.get("engine") == engine:
            numbers = (event.get("turn"), event.get("users"), event.get("t_ns"))
            if all(isinstance(n, int) and n >= 0 for n in numbers):
                marks.setdefault(event["turn"], []).append(event)
    found = []
    for turn in turns:
        own = marks.get(turn.turn, [])
        ends: list[Mapping[str, Any]] = [*own[1:], {"t_ns": turn.end_ns}]
        for mark, end in zip(own, ends, strict=False):
            start_ns, end_ns = mark["t_ns"], min(end["t_ns"], turn.end_ns)
            seconds = (end_ns - start_ns) / 1e9
            mono = (mark.get("mono_ns"), end.get("mono_ns"))
            if isinstance(mono[0], int) and isinstance(mono[1], int):
                seconds = (mono[1] - mono[0]) / 1e9
            if mark.get("settled") is True and mark["users"] and end_ns > start_ns and seconds > 0:
                found.append(Stretch(mark["users"], turn.turn, start_ns, end_ns, seconds))
    return found


def levels(columns: Columns, rows: Bools, stretches: Sequence[Stretch]) -> list[dict[str, Any]]:
    """Fewest users first: {"users_min", "users_max", "users": their mean over time, "seconds", "requests",
    "failed", "ttft_ms", "tpot_ms", "e2e_ms": as in the summary, "throughput_tokens_per_s", "requests_per_s",
    "concurrency"}. `rows` are the requests of the turns that count."""
    return [_level(columns, rows, some) for some in grouped(stretches)]


def find_knee(found: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The fewest users whose throughput is within 5 % of the best; None where it still rose."""
    points = [Point(round(one["users"]), one["throughput_tokens_per_s"]) for one in found]
    if (at := knee(points, MARGIN)) is None:
        return None
    return {"users": at.load, "below": at.below, "throughput_tokens_per_s": at.throughput}


def grouped(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """The stretches of each level, fewest users first."""
    numbers = sorted({s.users for s in stretches})
    if not numbers:
        return []
    width = 1 if len(numbers) <= MOST else -(-(numbers[-1] - numbers[0] + 1) // MOST)
    groups: dict[int, list[Stretch]] = {}
    for stretch in stretches:
        key = stretch.users if width == 1 else (stretch.users - numbers[0]) // width
        groups.setdefault(key, []).append(stretch)
    return [groups[key] for key in sorted(groups)]


def sent_in(columns: Columns, stretch: Stretch) -> Ints:
    """The rows of the requests that were sent in it."""
    picked = columns.of_turn(stretch.turn)
    sent_ns = columns.whole["sent_ns"][picked]
    return picked[(sent_ns >= stretch.start_ns) & (sent_ns < stretch.end_ns)]


def _level(columns: Columns, rows: Bools, stretches: Sequence[Stretch]) -> dict[str, Any]:
    mine = np.zeros(len(columns), dtype=np.bool_)
    parts = []
    for s in stretches:
        mine[sent_in(columns, s)] = True
        picked = columns.of_turn(s.turn)
        picked = picked[rows[picked]]
        sent_ns = columns.whole["sent_ns"][picked]
        gone_ns = sent_ns + np.round(columns.gone_ms(picked) * 1e6).astype(np.int64)
        near = picked[(sent_ns < s.end_ns) & (gone_ns >= s.start_ns)]
        parts.append(measure(columns, near, Turn(s.turn, 0, s.start_ns, s.end_ns, s.seconds)))
    mine &= rows
    sums = total(parts).figures()
    outcome = columns.word["outcome"]
    ok = mine & (outcome == OK)
    seconds = sum(s.seconds for s in stretches)
    return {
        "users": sum(s.users * s.seconds for s in stretches) / seconds,
        "users_min": min(s.users for s in stretches),
        "users_max": max(s.users for s in stretches),
        "seconds": seconds,
        "requests": int(mine.sum()),
        "failed": int((mine & (outcome == FAILED)).sum()),
        **{metric.name: describe(*metric.counted(columns, ok)) for metric in FIGURES},
        **{k: sums[k] for k in ("throughput_tokens_per_s", "requests_per_s", "concurrency")},
    }
