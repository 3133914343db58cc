"""engine from rows of engine.jsonl; what could not be scraped is a note in run_event."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import line
from loadgen.sinks.points.errors import moment
from loadgen.sinks.points.events import note_line
from loadgen.sinks.schema import ENGINE_METRICS

_FIELDS = tuple(f.name for f in ENGINE_METRICS.fields)


def engine_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    time_ns, engine = moment(row), row.get("engine")
    if isinstance(error := row.get("error"), str):
        return [note_line(context, engine, f"{engine}: metrics", error, time_ns)]
    tags = {"run": context.run, "scenario": context.scenario, "engine": engine}
    made = line("engine", tags, {name: row.get(name) for name in _FIELDS}, time_ns)
    return [made] if made else []
