"""llm_window from rows of windows.jsonl: the generator's own, provisional ones."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import line
from loadgen.sinks.points.errors import moment
from loadgen.sinks.schema import LLM_WINDOW

_FIELDS = tuple(f.name for f in LLM_WINDOW.fields)


def window_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    fields = {name: row.get(name) for name in _FIELDS}
    fields["tokens_per_s"] = row.get("tokens")  # a window is one second
    fields["provisional"] = 1
    tags = context.load_tags(row.get("engine"), worker=row.get("worker"), host=row.get("host"))
    made = line("llm_window", tags, fields, moment(row))
    return [made] if made else []
