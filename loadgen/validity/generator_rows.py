"""The generator's own load during measured turns, from rows of windows.jsonl. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.metrics.percentiles import rank

# A second with less of a turn than this is mostly something else: making prompts, reading results.
WHOLE_S = 0.9


@dataclass(frozen=True, slots=True)
class GeneratorLoad:
    """Over the measured seconds (of all workers): CPU of the process in percent of one core, mean and 95th
    percentile; how late its timers were, 95th percentile in milliseconds. None: not known."""

    seconds: int
    cpu_percent: float | None = None
    cpu_percent_p95: float | None = None
    loop_lag_ms_p95: float | None = None


def generator_load(rows: Iterable[Mapping[str, Any]]) -> GeneratorLoad | None:
    """None if there is no second that was measured from end to end."""
    cpu, lag, seconds = array("d"), array("d"), 0
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        measured = row.get("measured_s")
        if not isinstance(measured, (int, float)) or measured * (row.get("workers") or 1) < WHOLE_S:
            continue
        key = (row.get("worker"), row.get("engine"), row.get("t_ns"))
        if None not in key and key in seen:  # a worker's own file and the master's hold the same
            continue
        seen.add(key)
        seconds += 1
        for values, name in ((cpu, "cpu_percent"), (lag, "loop_lag_ms")):
            value = row.get(name)
            if isinstance(value, (int, float)):
                values.append(value)
    if not seconds:
        return None
    return GeneratorLoad(
        seconds,
        cpu_percent=float(np.mean(cpu)) if cpu else None,
        cpu_percent_p95=_p95(cpu),
        loop_lag_ms_p95=_p95(lag),
    )


def _p95(values: array[float]) -> float | None:
    return float(np.sort(np.asarray(values))[rank(len(values), 95)]) if values else None
