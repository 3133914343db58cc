"""What happened when: an engine's turns and the GPUs beneath them, on one axis of seconds. Pure.

Seconds of a turn count from its start, so that only its last one is cut. A run with more seconds than a
picture has points gets wider steps: sums of seconds, divided by what was measured of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns, Floats
from loadgen.metrics.gputrack import GpuTrack
from loadgen.metrics.seconds import Seconds, by_second
from loadgen.metrics.turns import Turn
from loadgen.record import WARMUP
from loadgen.report.load import EngineData
from loadgen.validity.gpu_throttling import ADVICE as SLOWED

MOST_POINTS = 1500
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
LEAST_OF_A_STEP = 0.25  # a shorter rest of a turn says little of a rate


@dataclass
class Line:
    """Values over seconds since the run's start; None is a gap."""

    x: list[float] = field(default_factory=list)
    y: list[float | None] = field(default_factory=list)

    def add(self, x: Floats, y: Floats) -> None:
        """Points, and a gap after them."""
        if len(x):
            self.x += [*np.round(x, 2).tolist(), round(float(x[-1]), 2)]
            self.y += [*(None if v != v else _short(v) for v in y.tolist()), None]


@dataclass
class EngineCourse:
    """An engine's turns as (start, end, complete), and its figures by name."""

    turns: list[tuple[float, float, bool]] = field(default_factory=list)
    tokens_per_s: Line = field(default_factory=Line)
    in_flight: Line = field(default_factory=Line)
    ttft_ms: Line = field(default_factory=Line)


@dataclass
class GpuCourse:
    """A GPU's figures by their names in gpu.jsonl; `held` are the seconds at which something held the clock
    back that should not (heat, the hardware's own brake), with their clock."""

    name: str
    lines: dict[str, Line]
    held: Line = field(default_factory=Line)
    power_limit_w: float | None = None
    max_sm_clock_mhz: float | None = None


@dataclass
class Course:
    """All of a run in time; `step_s` is what a point stands for."""

    engines: dict[str, EngineCourse]
    gpus: list[GpuCourse]
    seconds: float
    step_s: int


def course(engines: Mapping[str, EngineData], gpus: Sequence[GpuTrack], start_ns: int) -> Course:
    """The course of a run that began at `start_ns` (wall)."""
    turns = [t for e in engines.values() for t in e.turns]
    end_ns = max((t.end_ns for t in turns), default=start_ns)
    measured = max((sum(t.seconds for t in e.turns) for e in engines.values()), default=0.0)
    step = step_of(measured)
    seconds = max((end_ns - start_ns) / 1e9, 0.0)
    return Course(
        {name: _engine(e.columns, e.turns, start_ns, step) for name, e in engines.items()},
        [_gpu(track, start_ns, seconds) for track in gpus],
        seconds,
        step,
    )


def step_of(seconds: float, most: int = MOST_POINTS) -> int:
    """The width of a step in seconds, so that a run has `most` steps or fewer (weeks have more)."""
    return next((s for s in STEPS_S if seconds <= s * most), STEPS_S[-1])


def _engine(columns: Columns, turns: Iterable[Turn], start_ns: int, step: int) -> EngineCourse:
    out = EngineCourse()
    measured = columns.word["phase"] != WARMUP
    for turn in turns:
        at = (turn.start_ns - start_ns) / 1e9
        out.turns.append((round(at, 2), round(at + turn.seconds, 2), turn.complete))
        mine = measured & (columns.whole["turn"] == turn.turn)
        part = by_second(columns, mine, turn, origin_ns=turn.start_ns)
        if not len(part):
            continue
        sums = _steps(part, step)
        length = sums["measured_s"]
        enough = (length >= LEAST_OF_A_STEP * step) | (np.arange(len(length)) == 0)
        middle = at + np.arange(len(length)) * step + length / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            out.tokens_per_s.add(middle[enough], (sums["tokens"] / length)[enough])
            out.in_flight.add(middle[enough], (sums["in_flight"] / length)[enough])
            some = sums["first_tokens"] > 0
            out.ttft_ms.add(middle[some], (sums["ttft_sum_ms"] / sums["first_tokens"])[some])
    return out


def _steps(part: Seconds, step: int) -> dict[str, Floats]:
    starts = np.arange(0, len(part), step)
    names = ("measured_s", "tokens", "in_flight", "first_tokens", "ttft_sum_ms")
    return {n: np.add.reduceat(np.asarray(getattr(part, n), dtype=np.float64), starts) for n in names}


def _gpu(track: GpuTrack, start_ns: int, seconds: float) -> GpuCourse:
    facts = track.facts
    at = (track.t_ns - start_ns) / 1e9
    during = (at >= -5.0) & (at <= seconds + 5.0)  # an agent samples on after the run
    step = step_of(float(np.ptp(at[during])) if during.any() else 0.0)
    named = " ".join(str(facts[k]) for k in ("host", "name") if facts.get(k))
    gpu = GpuCourse(f"GPU {facts.get('gpu', '')}{f' ({named})' if named else ''}", {})
    for name, values in (*track.course.items(), ("power_w", track.power_w)):
        line = Line()
        x, y = _means(at[during], values[during], step)
        line.add(x, y)
        if any(v is not None for v in line.y):
            gpu.lines[name] = line
    bad = [i for reason in SLOWED if reason in track.reasons for i in track.reasons[reason].tolist()]
    held = np.unique(np.array(bad, dtype=np.int64))
    held = held[during[held]] if len(held) else held
    if len(held) and "sm_clock_mhz" in track.course:
        gpu.held.add(at[held], track.course["sm_clock_mhz"][held])
    for name in ("power_limit_w", "max_sm_clock_mhz"):
        value: Any = facts.get(name)
        setattr(gpu, name, float(value) if isinstance(value, (int, float)) else None)
    return gpu


def _means(x: Floats, y: Floats, step: int) -> tuple[Floats, Floats]:
    """Means of steps; as it is where a step holds one sample."""
    if step == 1 or not len(x):
        return x, y
    place = np.floor(x / step).astype(np.int64)
    starts = np.flatnonzero(np.diff(place, prepend=place[0] - 1))
    known = np.isfinite(y)
    n = np.add.reduceat(known.astype(np.float64), starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.add.reduceat(x, starts) / np.diff(starts, append=len(x)), np.where(
            n > 0, np.add.reduceat(np.where(known, y, 0.0), starts) / n, np.nan
        )


def _short(value: float) -> float:
    """Five significant digits: what a picture can show."""
    return float(f"{value:.5g}")
