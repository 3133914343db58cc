"""What held GPUs back while they worked in measured turns, from rows of gpu.jsonl. Pure.

Only samples inside a turn count, without the first and the last of each turn: a sample tells of the time
before it, and clocks follow a load with some delay (an H200 shows its power cap just after a load as well).
A GPU that is idle in a sample is not held back by anything.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadgen.metrics.gputrack import processes
from loadgen.metrics.turns import Turn

IDLE = "gpu_idle"
BUSY_PERCENT = 10.0
CLOCKED_PERCENT = 50.0  # a card with less to do may clock down by itself


@dataclass
class Held:
    """The samples that gave one reason, by engine whose turn it was, and the SM clocks they showed."""

    engines: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    clocks: int = 0
    clock_sum_mhz: float = 0.0

    @property
    def clock_mhz(self) -> float | None:
        return self.clock_sum_mhz / self.clocks if self.clocks else None


@dataclass
class GpuLoad:
    """One GPU under load: how many samples with reasons, and what held it back in how many of them.

    `clocks_mhz` are the SM clocks of the samples in which it was busy, `free` whether each had no reason to
    be lower. `engines` are those whose processes were seen on it in measured turns.
    """

    host: str
    gpu: str
    max_sm_clock_mhz: float | None = None
    samples: int = 0
    reasons: dict[str, Held] = field(default_factory=dict)
    clocks_mhz: array[float] = field(default_factory=lambda: array("d"))
    free: array[int] = field(default_factory=lambda: array("b"))
    engines: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"GPU {self.gpu} of {self.host}" if self.host else f"GPU {self.gpu}"

    def add(self, engines: Iterable[str], row: Mapping[str, Any]) -> None:
        reasons = row.get("throttle_reasons")
        busy = row.get("utilization_percent")
        clock = row.get("sm_clock_mhz")
        for process in processes(row):
            if isinstance(process.get("engine"), str):
                self.engines.add(process["engine"])
        if isinstance(reasons, list) and IDLE in reasons:
            return
        if isinstance(busy, (int, float)) and isinstance(clock, (int, float)) and busy >= CLOCKED_PERCENT:
            self.clocks_mhz.append(clock)
            self.free.append(not reasons)
        if not isinstance(reasons, list) or (isinstance(busy, (int, float)) and busy < BUSY_PERCENT):
            return
        self.samples += 1
        for reason in map(str, reasons):
            held = self.reasons.setdefault(reason, Held())
            held.samples += 1
            held.engines.update(engines)
            if isinstance(clock, (int, float)):
                held.clock_sum_mhz += clock
                held.clocks += 1


def gpu_load(rows: Iterable[Mapping[str, Any]], turns: Mapping[str, Sequence[Turn]]) -> list[GpuLoad]:
    """GPUs with samples in measured turns that tell something, from rows in their order of time. Turns in
    which the wall clock was set are left out: samples cannot be placed in them."""
    at = _finder(turns)
    gpus: dict[tuple[str, str, str], GpuLoad] = {}
    # By GPU: the turns that its last sample was in, and that sample, unless it was their first.
    last: dict[tuple[str, str, str], tuple[Any, Mapping[str, Any] | None]] = {}
    for row in rows:
        gpu = str(row.get("gpu", "")) + (f"/{row['mig_instance']}" if row.get("mig_instance") else "")
        key = (str(row.get("host") or ""), gpu, str(row.get("source") or ""))
        t_ns = row.get("t_ns")
        if row.get("kind") == "facts":
            clock = row.get("max_sm_clock_mhz")
            load = gpus.setdefault(key, GpuLoad(key[0], gpu))
            load.max_sm_clock_mhz = float(clock) if isinstance(clock, (int, float)) else None
        elif row.get("kind") == "sample" and isinstance(t_ns, int):
            now = at(t_ns)
            before, sample = last.get(key, ((), None))
            if now != before:
                last[key] = (now, None)
                continue
            if now and sample is not None:  # another one has followed it in the same turn: not the last
                load = gpus.setdefault(key, GpuLoad(key[0], gpu))
                load.add([engine for engine, _ in now], sample)
            last[key] = (now, row)
    return [load for load in gpus.values() if load.samples or load.clocks_mhz or load.engines]


def _finder(turns: Mapping[str, Sequence[Turn]]) -> Callable[[int], tuple[tuple[str, int], ...]]:
    """A function from a wall time to the (engine, turn) that it lies in: none, one, or one an engine where
    engines run in parallel."""
    tables = []
    for engine, own in turns.items():
        spans = sorted((t.start_ns, t.end_ns, t.turn) for t in own if not t.clock_stepped)
        tables.append((engine, [start for start, _, _ in spans], spans))

    def at(t_ns: int) -> tuple[tuple[str, int], ...]:
        found = []
        for engine, starts, spans in tables:
            n = bisect_right(starts, t_ns) - 1
            if n >= 0 and t_ns <= spans[n][1]:
                found.append((engine, spans[n][2]))
        return tuple(found)

    return at
