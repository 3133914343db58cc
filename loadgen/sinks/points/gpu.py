"""gpu and gpu_process from rows of gpu.jsonl."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import line
from loadgen.sinks.points.errors import moment
from loadgen.sinks.points.events import note_line
from loadgen.sinks.schema import GPU, THROTTLE_REASONS

_FIELDS = tuple(f.name for f in GPU.fields if f.name != "throttle_reasons")
_CONSTANTS = ("max_sm_clock_mhz", "power_limit_w", "memory_total_bytes")


def gpu_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    """A sample's lines. Facts make none: they name the card and give its constants to later samples."""
    kind = row.get("kind")
    if kind == "facts":
        context.gpus[str(row.get("host")), str(row.get("gpu"))] = row
        return []
    if kind == "note":
        text = row.get("text")
        has_all = isinstance(text, str) and row.get("t_ns") is not None
        return [note_line(context, None, "GPU", str(text), moment(row))] if has_all else []
    return _sample(row, context)


def _sample(row: dict[str, Any], context: RunContext) -> list[str]:
    time_ns = moment(row)
    facts = context.gpus.get((str(row.get("host")), str(row.get("gpu"))), {})
    tags = {
        "run": context.run,
        "host": row.get("host"),
        "gpu": row.get("gpu"),
        "gpu_name": row.get("name") or facts.get("name"),
        "source": row.get("source"),
        "mig_instance": row.get("mig_instance"),
    }
    constants = {name: facts.get(name) for name in _CONSTANTS}
    fields = {**constants, **{k: v for k in _FIELDS if (v := row.get(k)) is not None}, **_throttle(row)}
    lines = [line("gpu", tags, fields, time_ns)]
    for engine, memory in _by_engine(row.get("processes")).items():
        of_engine = {"run": context.run, "host": row.get("host"), "gpu": row.get("gpu"), "engine": engine}
        lines.append(line("gpu_process", of_engine, {"memory_bytes": memory}, time_ns))
    return [one for one in lines if one]


def _throttle(row: dict[str, Any]) -> dict[str, Any]:
    """Reasons as one string and as flags; nothing where the card does not say."""
    reasons = row.get("throttle_reasons")
    if not isinstance(reasons, list):
        return {}
    flags = {f"throttle_{name}": name in reasons for name in THROTTLE_REASONS}
    return {"throttle_reasons": ",".join(map(str, reasons)), **flags}


def _by_engine(processes: Any) -> dict[str, int | float]:
    """Memory by engine; processes that belong to none are left out."""
    out: dict[str, int | float] = {}
    for process in processes if isinstance(processes, list) else ():
        if not isinstance(process, dict) or not process.get("engine"):
            continue
        memory = process.get("memory_bytes")
        if isinstance(memory, (int, float)):
            out[str(process["engine"])] = out.get(str(process["engine"]), 0) + memory
    return out
