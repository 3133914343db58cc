"""run_event from rows of events.jsonl: notes, and phases as one point from their start to their end."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import line
from loadgen.sinks.points.errors import moment
from loadgen.store import events

COOLDOWN = "cooldown"
PHASES = {
    events.TURN_START: ("turn", False),
    events.TURN_END: ("turn", True),
    events.WARMUP_START: ("warmup", False),
    events.WARMUP_END: ("warmup", True),
}
TITLES = {
    events.RUN_START: "run begins",
    events.RUN_END: "run ends",
    events.NOTE: "note",
    COOLDOWN: "cool-down",
}


def event_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    """One line an event. A phase's end is written into the point of its start, which has the same tags and
    time; an end whose start is missing makes none."""
    time_ns = moment(row)
    kind = str(row.get("kind"))
    if kind == events.USERS:  # llm_window has them, second by second
        return []
    if kind not in PHASES:
        if kind != events.COOLDOWN_START:
            return [_line(context, kind, row)]
        seconds = row.get("seconds")
        end_ms = time_ns // 10**6 + round(seconds * 1000) if isinstance(seconds, (int, float)) else None
        return [_line(context, COOLDOWN, row, end_ms)]
    phase, ended = PHASES[kind]
    key = (phase, str(row.get("engine")), str(row.get("turn")))
    if not ended:
        context.phases[key] = row
        return [_line(context, phase, row)]
    start = context.phases.pop(key, None)
    if start is None:
        return []
    return [_line(context, phase, {**start, "complete": row.get("complete")}, time_ns // 10**6)]


def note_line(context: RunContext, engine: Any, title: str, text: str, time_ns: int) -> str:
    """A note that another journal holds."""
    row = {"t_ns": time_ns, "engine": engine, "text": text, "title": title}
    return _line(context, events.NOTE, row)


def _line(context: RunContext, kind: str, row: dict[str, Any], end_ms: int | None = None) -> str:
    engine, turn = row.get("engine"), row.get("turn")
    title = row.get("title") or TITLES.get(kind, kind)
    if kind in ("turn", "warmup"):
        title = f"{engine}: {'turn' if kind == 'turn' else 'warm-up of turn'} {turn}"
    fields = {
        "title": title,
        "text": row.get("text") or row.get("state"),
        "tags": ",".join(str(part) for part in (kind, engine) if part),
        "turn": turn,
        "block": row.get("block"),
        "users": row.get("users"),
        "complete": row.get("complete"),
        "start_ms": row["t_ns"] // 10**6,
        "end_ms": end_ms,
    }
    tags = {"run": context.run, "scenario": context.scenario, "engine": engine, "kind": kind}
    made = line("run_event", tags, fields, row["t_ns"])
    assert made is not None  # a title is always there
    return made
