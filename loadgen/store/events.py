"""events.jsonl: what happened in a run, and when: phases of turns, notes.

    {"t_ns": 1796056862000000000, "mono_ns": 81234000000, "kind": "turn_start",
     "engine": "vllm", "turn": 0, "block": 0}

Kinds: run_start, warmup_start, warmup_end, turn_start, turn_end (with `complete`), cooldown_start,
level (a part of a shape begins: `users`, `title`), users (how many have work now; `settled`: as many as were
asked for), worker_lost (with `worker`, `host`, `records`), note (with `text`), run_end. `t_ns` is wall time,
`mono_ns` the monotonic clock of the process that ran it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from loadgen.store.jsonl import Damage, read_rows
from loadgen.store.lines import LineWriter

RUN_START = "run_start"
RUN_END = "run_end"
WARMUP_START = "warmup_start"
WARMUP_END = "warmup_end"
TURN_START = "turn_start"
TURN_END = "turn_end"
COOLDOWN_START = "cooldown_start"
LEVEL = "level"
USERS = "users"
NOTE = "note"
WORKER_LOST = "worker_lost"


class EventsWriter(LineWriter):
    """Appends events; a line each, written at once."""

    def append(self, event: dict[str, Any] | str, /, **fields: Any) -> None:  # type: ignore[override]
        """Write one event: a dict with `kind`, or the kind and its fields.

        `t_ns` and `mono_ns` are now, unless given (a turn ends when its last request does, not when
        someone writes it down).
        """
        row = {"kind": event, **fields} if isinstance(event, str) else {**event, **fields}
        now = {"t_ns": time.time_ns(), "mono_ns": time.monotonic_ns()}
        super().append(orjson.dumps({**now, **row}, default=str))


def read_events(path: Path, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
    """The events in the order they were written, whatever their kind."""
    yield from read_rows(path, damage)
