"""Energy of an engine's measured turns: joules per output token and per request.

    joules of a turn = sum over the engine's GPUs of the rise of the energy counter over the turn

The counter at a turn's edge is interpolated between the samples around it. Where power jumps by D watts
between two samples b seconds apart, that puts up to D b / 4 joules on the wrong side of the edge, so a turn
of ten beats or more is right to a twentieth; shorter ones have no figure. Between samples where the counter
is missing or went back (a driver loaded anew), power x time stands in (trapezoids), unless the samples are
too far apart. It is the whole card's energy, idle power included, and what else runs on it.

    joules per output token = joules / tokens that arrived in those turns
    joules per request      = joules / successful requests that ended in them

An engine's GPUs are those on which its processes were seen, or, where no process could be told apart, all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.metrics.gputrack import GpuTrack
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals

COVERED = 0.95  # of a turn must lie between samples; what is missing is taken at the turn's mean power
LONGEST_GAP_S = 5.0  # over which power is taken as a straight line, or five times the usual beat
STUCK_S = 10.0
LEAST_BEATS = 10

COUNTER = "counter"
POWER = "power"


@dataclass(frozen=True)
class EngineEnergy:
    """`joules` by turn; `too_short` are turns with too few samples. `named`: the engine's processes were told
    apart; else `gpus` are all that there are.

    `source` is where the energy is from, `counter` or `power`. `peak_memory_bytes` is the most that the
    engine's processes held, summed over GPUs.
    """

    joules: dict[int, float] = field(default_factory=dict)
    gpus: int = 0
    named: bool = False
    source: str = COUNTER
    peak_memory_bytes: int | None = None
    too_short: frozenset[int] = frozenset()

    def figures(self, parts: Sequence[tuple[Turn, Totals]]) -> dict[str, Any]:
        """The figures by their names in the JSON summary, of the turns in `parts` whose energy is known."""
        known = [
            (self.joules[turn.turn], sums.from_empty_to_empty)
            for turn, sums in parts
            if turn.turn in self.joules
        ]
        out: dict[str, Any] = {"gpus": self.gpus, "gpus_named": self.named}
        if known:
            joules = math.fsum(j for j, _ in known)
            seconds = math.fsum(sums.seconds for _, sums in known)
            out |= {"energy_j": joules, "energy_source": self.source, "turns": len(known)}
            per = {
                "joules_per_output_token": math.fsum(sums.tokens for _, sums in known),
                "joules_per_request": sum(sums.ok for _, sums in known),
                "mean_power_w": seconds,
            }
            out |= {name: joules / of for name, of in per.items() if of > 0}
        if short := sum(turn.turn in self.too_short for turn, _ in parts):
            out["turns_too_short"] = short
        if self.peak_memory_bytes is not None:
            out["peak_memory_bytes"] = self.peak_memory_bytes
        return out


def engine_energy(tracks: Sequence[GpuTrack], turns: Mapping[str, Sequence[Turn]]) -> dict[str, EngineEnergy]:
    """The energy of every engine's turns; empty if there are no samples.

    A turn during which another engine was measured on one of the same GPUs has none: the two can't be told
    apart. Nor has one in which the wall clock was set, as samples can't be placed in it.
    """
    if not tracks:
        return {}
    meters = [Meter(track) for track in tracks]
    on = {engine: {n for n, track in enumerate(tracks) if engine in track.memory} for engine in turns}
    used = {engine: own or set(range(len(tracks))) for engine, own in on.items()}
    out = {}
    for engine, own in turns.items():
        rivals = [
            turn for other in turns if other != engine and used[other] & used[engine] for turn in turns[other]
        ]
        joules = {}
        least_s = LEAST_BEATS * max(meters[n].beat_s for n in used[engine])
        short = frozenset(turn.turn for turn in own if turn.seconds < least_s)
        for turn in own:
            if turn.turn in short or turn.clock_stepped or any(_overlap(turn, rival) for rival in rivals):
                continue
            parts = [meters[n].between(turn.start_ns, turn.end_ns) for n in used[engine]]
            if all(part is not None for part in parts):
                joules[turn.turn] = math.fsum(part for part in parts if part is not None)
        memory = [tracks[n].memory[engine] for n in on[engine]]
        out[engine] = EngineEnergy(
            joules=joules,
            gpus=len(used[engine]),
            named=bool(on[engine]),
            source=COUNTER if all(meters[n].counts for n in used[engine]) else POWER,
            peak_memory_bytes=sum(memory) if any(memory) else None,
            too_short=short,
        )
    return out


def _overlap(a: Turn, b: Turn) -> bool:
    both_ns = min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns)
    return both_ns > (1 - COVERED) * (a.end_ns - a.start_ns)


class Meter:
    """Joules and covered seconds of one GPU since its first sample, at every sample."""

    def __init__(self, track: GpuTrack) -> None:
        self._t = (track.t_ns - track.t_ns[0]) / 1e9
        self._start_ns = int(track.t_ns[0])
        steps = np.diff(self._t)
        self.beat_s = float(np.median(steps)) if len(steps) else 0.0
        power = (track.power_w[1:] + track.power_w[:-1]) / 2 * steps
        power[steps > max(LONGEST_GAP_S, 5 * self.beat_s)] = np.nan
        counted = np.diff(track.energy_j)
        counted[counted < 0] = np.nan
        self.counts = bool(np.isfinite(counted).any()) and not _stuck(steps, counted, power)
        joules = np.where(np.isfinite(counted), counted, power) if self.counts else power
        known = np.isfinite(joules)
        self._joules = _running_sum(np.where(known, joules, 0.0))
        self._covered = _running_sum(np.where(known, steps, 0.0))

    def between(self, start_ns: int, end_ns: int) -> float | None:
        """Joules from one wall time to another; None where too little of that is covered by samples."""
        edges = [(t - self._start_ns) / 1e9 for t in (start_ns, end_ns)]
        (joules_0, joules_1), (covered_0, covered_1) = (
            np.interp(edges, self._t, values) for values in (self._joules, self._covered)
        )
        length, covered = edges[1] - edges[0], covered_1 - covered_0
        if length <= 0 or covered < COVERED * length:
            return None
        return float((joules_1 - joules_0) * length / covered)


def _stuck(steps: NDArray[np.float64], counted: NDArray[np.float64], power: NDArray[np.float64]) -> bool:
    """A counter that stands still while watts flow is none (some virtual machines)."""
    return bool(np.nansum(steps) > STUCK_S and np.nansum(counted) == 0 and np.nansum(power) > 0)


def _running_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate(([0.0], np.cumsum(values)))
