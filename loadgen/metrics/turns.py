"""The windows in which an engine was measured: one a turn, from events.jsonl, or from the records alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns
from loadgen.record import WARMUP

STEP_NS = 10_000_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One engine's N prompts of one block, from empty to empty.

    `start_ns` and `end_ns` are wall time, to place the records' events; `seconds` is the length, from the
    monotonic clock where both ends have it. `clock_stepped`: the two clocks disagree by over 10 ms, so that
    records can't be placed in the turn by wall time. `derived`: there was no turn_start or turn_end, and the
    first request's `sent` or the last one's end stands in for it.

    In an open loop `scheduled` requests were due within `schedule_s` seconds of the start (None: a closed
    loop), `dropped` of them were never sent, and `peak_in_flight` is the most that there were at once.
    """

    turn: int
    block: int
    start_ns: int
    end_ns: int
    seconds: float
    complete: bool = True
    derived: bool = False
    clock_stepped: bool = False
    schedule_s: float | None = None
    scheduled: int = 0
    dropped: int = 0
    peak_in_flight: int = 0


def find_turns(
    engine: str,
    events: Iterable[Mapping[str, Any]],
    columns: Columns,
    *,
    turn_requests: int | None = None,
    run_complete: bool = True,
) -> list[Turn]:
    """The engine's turns, in order.

    A turn is complete when its turn_end says so. Where no turn_end was written (the run was killed) it is
    not; where there are no events at all of the turn, it is complete if it has its `turn_requests` records,
    or, that number not being known, if the run is complete.
    """
    starts: dict[int, Mapping[str, Any]] = {}
    ends: dict[int, Mapping[str, Any]] = {}
    for event in events:
        if event.get("engine") == engine and isinstance(turn := event.get("turn"), int):
            if event.get("kind") == "turn_start" and isinstance(event.get("t_ns"), int):
                starts.setdefault(turn, event)
            elif event.get("kind") == "turn_end" and isinstance(event.get("t_ns"), int):
                ends[turn] = event
    measured = columns.word["phase"] != WARMUP
    numbers = columns.whole["turn"]
    sent_ns = columns.whole["sent_ns"]
    gone_ns = sent_ns + np.round(columns.gone_ms() * 1e6).astype(np.int64)
    turns = []
    for turn in sorted({*starts, *ends, *(int(n) for n in np.unique(numbers[measured]))}):
        rows = measured & (numbers == turn)
        sent = rows & (sent_ns > 0)  # a request that found no server was never sent
        some = bool(sent.any())
        start, end = starts.get(turn), ends.get(turn)
        start_ns = (
            int(start["t_ns"])
            if start
            else int(sent_ns[sent].min())
            if some
            else int((end or {}).get("t_ns", 0))
        )
        end_ns = int(end["t_ns"]) if end else int(gone_ns[sent].max()) if some else start_ns
        seconds = (end_ns - start_ns) / 1e9
        stepped = False
        mono = [e.get("mono_ns") for e in (start, end) if e]
        if len(mono) == 2 and isinstance(mono[0], int) and isinstance(mono[1], int) and mono[1] >= mono[0]:
            stepped = abs((mono[1] - mono[0]) - (end_ns - start_ns)) > STEP_NS
            seconds = (mono[1] - mono[0]) / 1e9
        if end:
            complete = end.get("complete", True) is True
        elif start:
            complete = False
        else:
            complete = int(rows.sum()) >= turn_requests if turn_requests else run_complete
        block = (start or end or {}).get("block")
        if not isinstance(block, int):
            block = int(columns.whole["block"][rows][0]) if rows.any() else turn
        found = Turn(turn, block, start_ns, end_ns, seconds, complete, not (start and end), stepped)
        turns.append(replace(found, **_schedule(start or {}, end or {})))
    return turns


def _schedule(start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, Any]:
    """What the events of an open loop's turn say of its schedule."""
    seconds = start.get("schedule_s")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return {}
    said = {"scheduled": start.get("scheduled")}
    said |= {name: end.get(name) for name in ("dropped", "peak_in_flight")}
    known = {k: v for k, v in said.items() if isinstance(v, int) and not isinstance(v, bool)}
    return {"schedule_s": float(seconds), **known}
