"""GPU samples as columns: one track a GPU, whoever sampled it. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PREFERRED = ("nvml", "dcgm")
COURSE = ("sm_clock_mhz", "temperature_c", "memory_used_bytes", "utilization_percent")

Id = tuple[str, str]  # host and GPU, or "" and UUID


@dataclass
class GpuTrack:
    """One GPU in time: wall nanoseconds, joules of its counter, watts; NaN where a sample has none.

    `memory` is the most that each engine's processes held on it, in bytes. `course` has further columns by
    their names in gpu.jsonl (COURSE), `reasons` the samples (their indices) in which each throttle reason was
    given, `facts` what the card says of itself.
    """

    t_ns: NDArray[np.int64]
    energy_j: NDArray[np.float64]
    power_w: NDArray[np.float64]
    memory: dict[str, int] = field(default_factory=dict)
    course: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    reasons: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def processes(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The processes on a GPU that a sample tells of."""
    said = row.get("processes")
    return [p for p in said if isinstance(p, dict)] if isinstance(said, list) else []


class _Building:
    def __init__(self) -> None:
        self.t_ns, self.energy_j, self.power_w = array("q"), array("d"), array("d")
        self.memory: dict[str, int] = {}
        self.course = {name: array("d") for name in COURSE}
        self.reasons: dict[str, array[int]] = {}
        self.facts: Mapping[str, Any] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        reasons = row.get("throttle_reasons")
        for reason in reasons if isinstance(reasons, list) else ():
            self.reasons.setdefault(str(reason), array("q")).append(len(self.t_ns))
        for name, column in self.course.items():
            column.append(_number(row.get(name)))
        self.t_ns.append(row["t_ns"])
        self.energy_j.append(_number(row.get("energy_j")))
        self.power_w.append(_number(row.get("power_w")))
        held: dict[str, int] = {}
        for process in processes(row):
            engine, memory = process.get("engine"), process.get("memory_bytes")
            if isinstance(engine, str):
                held[engine] = held.get(engine, 0) + (memory if isinstance(memory, int) else 0)
        for engine, memory in held.items():
            self.memory[engine] = max(memory, self.memory.get(engine, 0))

    def build(self) -> GpuTrack:
        t_ns = np.array(self.t_ns, dtype=np.int64)
        order = np.argsort(t_ns, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return GpuTrack(
            t_ns[order],
            np.array(self.energy_j)[order],
            np.array(self.power_w)[order],
            self.memory,
            {name: np.array(column)[order] for name, column in self.course.items()},
            {reason: np.sort(place[np.array(at)]) for reason, at in self.reasons.items()},
            self.facts,
        )


def gpu_tracks(rows: Iterable[Mapping[str, Any]]) -> list[GpuTrack]:
    """One track for each card in rows of gpu.jsonl.

    A card that NVML and a dcgm-exporter both sampled counts once (NVML's rows), told by its UUID; of MIG
    instances, whose rows repeat the whole card's power and energy, the first one stands for the card.
    """
    uuids: dict[tuple[str, str, str], str] = {}
    facts: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    found: dict[Id, dict[tuple[str, str], _Building]] = {}
    for row in rows:
        host, gpu = str(row.get("host", "")), str(row.get("gpu", ""))
        source, instance = str(row.get("source", "")), str(row.get("mig_instance", ""))
        if row.get("kind") == "facts":
            facts[host, gpu, source] = row
            if isinstance(row.get("uuid"), str):
                uuids[host, gpu, source] = row["uuid"]
        elif row.get("kind") == "sample" and isinstance(row.get("t_ns"), int):
            uuid = uuids.get((host, gpu, source))
            card = ("", uuid) if uuid else (host, gpu)
            building = found.setdefault(card, {}).setdefault((source, instance), _Building())
            building.facts = facts.get((host, gpu, source)) or {"host": host, "gpu": gpu, "source": source}
            building.add(row)
    return [_best(views).build() for views in found.values()]


def _best(views: Mapping[tuple[str, str], _Building]) -> _Building:
    for source in _PREFERRED:
        for (of, _), building in views.items():
            if of == source:
                return building
    return next(iter(views.values()))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")
