"""windows.jsonl: what the generator sees in each second, for live views.

A row per engine and whole wall second, from the run's first to its last, also while it is not the engine's
turn:

    {"t_ns": 1796056862000000000, "engine": "vllm", "worker": "local", "phase": "measure", "turn": 0,
     "block": 0, "turn_s": 3.2, "measured_s": 1.0, "tokens": 812, "in_flight": 16, "users": 16,
     "completions": 2, "failures": 0, "read_lag_ms": 0.3, "loop_lag_ms": 0.9, "cpu_percent": 12.5}

`tokens` are raw events, most often one token each, and `in_flight` is as of the second's end: provisional,
the exact figures come from the journal when the run is over. `measured_s` is how much of the second was
measured, divided by the `workers` that share the turn; `read_lag_ms` the largest of the requests that ended
in it, `loop_lag_ms` how late the timer was, `cpu_percent` the process's share of one core. Workers say their
`host`, and how many `workers` share the turn.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gevent
import orjson

from loadgen.record import CANCELLED, FAILED, MEASURE, OK, WARMUP, RequestRecord
from loadgen.store.lines import LineWriter
from loadgen.users.crew import Batch, Crew

log = logging.getLogger("loadgen")

IDLE = "idle"
SECOND_NS = 1_000_000_000


class _Second:
    """What ended in the second that goes on, for one engine."""

    __slots__ = ("completions", "events", "failures", "read_lag_ms")

    def __init__(self, events: int) -> None:
        self.events = events  # raw events since the process began, at the second's start
        self.completions = 0
        self.failures = 0
        self.read_lag_ms: float | None = None


class WindowWriter:
    """Writes a row per engine at the end of each second until `stop`.

    `live_events` gives the raw events that have been read of an engine; `also` gets each line that is
    written. A disk that is full costs these rows, never the run.
    """

    def __init__(
        self,
        path: Path,
        engines: Sequence[str],
        crew: Crew,
        live_events: Callable[[str], int],
        *,
        worker: str = "local",
        host: str | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
        also: Callable[[bytes], None] | None = None,
    ) -> None:
        self._lines = LineWriter(path)
        self._engines = list(engines)
        self._crew = crew
        self._live = live_events
        self._worker = {"worker": worker, **({"host": host} if host else {})}
        self._wall_ns = wall_ns
        self._also = also
        self._seconds = {name: _Second(live_events(name)) for name in engines}
        self._cpu_s, self._cpu_at = time.process_time(), time.monotonic()
        self._start_ns = _floor(wall_ns())
        self._greenlet = gevent.spawn(self._main)

    def add(self, record: RequestRecord) -> None:
        """A request has ended."""
        second = self._seconds.get(record.engine)
        if second is None or record.outcome == CANCELLED:
            return
        second.completions += record.outcome == OK
        second.failures += record.outcome == FAILED
        if record.read_lag_ms is not None:
            second.read_lag_ms = max(second.read_lag_ms or 0.0, record.read_lag_ms)

    def stop(self) -> None:
        """Write the second that goes on, as it is."""
        self._greenlet.kill()
        self._write(late_ms=0.0)
        self._lines.close()

    def _main(self) -> None:
        while True:
            due_ns = self._start_ns + SECOND_NS
            gevent.sleep(max(0.0, (due_ns - self._wall_ns()) / 1e9))
            now_ns = self._wall_ns()
            if now_ns < due_ns:  # woken early, or the clock was set back: by more than this is another hour
                if due_ns - now_ns < 2 * SECOND_NS:
                    continue
                self._start_ns = _floor(now_ns)
                continue
            self._write(late_ms=(now_ns - due_ns) / 1e6)
            # A process that was held up for seconds goes on with the second it is in.
            self._start_ns = max(due_ns, _floor(now_ns))

    def _write(self, late_ms: float) -> None:
        cpu_s, at = time.process_time(), time.monotonic()
        cpu_percent = 100 * (cpu_s - self._cpu_s) / max(at - self._cpu_at, 1e-3)
        self._cpu_s, self._cpu_at = cpu_s, at
        batches = [*self._crew.batches, *self._crew.ended]
        self._crew.ended.clear()
        for name in self._engines:
            events = self._live(name)
            second, self._seconds[name] = self._seconds[name], _Second(events)
            row = {
                "t_ns": self._start_ns,
                "engine": name,
                **self._worker,
                **_stage([b for b in batches if b.lane.name == name], self._start_ns, self._wall_ns()),
                "tokens": max(0, events - second.events),
                "completions": second.completions,
                "failures": second.failures,
                "loop_lag_ms": round(late_ms, 3),
                "cpu_percent": round(cpu_percent, 2),
            }
            if second.read_lag_ms is not None:
                row["read_lag_ms"] = second.read_lag_ms
            line = orjson.dumps(row)
            self._lines.append(line)
            if self._also is not None:
                self._also(line)


def _stage(batches: Sequence[Batch], start_ns: int, now_ns: int) -> dict[str, Any]:
    """What the engine did in the second from `start_ns` (wall time) until now: of its batches, those that go
    on and those that have ended in it."""
    going = [b for b in batches if b.start_mono_ns]
    stage = {
        "in_flight": sum(b.in_flight for b in going),
        "users": max((len(b.members) for b in going if b.end_mono_ns is None), default=0),
    }
    turns = [b for b in going if b.phase != WARMUP]
    if not turns:
        return {"phase": WARMUP if going else IDLE, "measured_s": 0.0, **stage}
    offset_ns = now_ns - time.monotonic_ns()
    measured_ns = 0
    for turn in turns:
        end_ns = now_ns if turn.end_mono_ns is None else turn.end_mono_ns + offset_ns
        inside_ns = min(end_ns, start_ns + SECOND_NS) - max(turn.start_mono_ns + offset_ns, start_ns)
        measured_ns += max(0, inside_ns) // turn.workers
    first = min(turns, key=lambda b: b.turn)
    return {
        "phase": MEASURE,
        "turn": first.turn,
        "block": first.block,
        "turn_s": round(max(0, start_ns - first.start_mono_ns - offset_ns) / 1e9, 3),
        "measured_s": round(min(measured_ns, SECOND_NS) / 1e9, 3),
        **({"workers": first.workers} if first.workers > 1 else {}),
        **stage,
    }


def _floor(t_ns: int) -> int:
    return t_ns - t_ns % SECOND_NS
