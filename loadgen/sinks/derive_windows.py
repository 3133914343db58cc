"""The exact llm_window and llm_window_aligned points of a run.

A second with measured time counts measured requests alone, even where the last warm-up request ended in it,
so that sum(tokens) / sum(measured_s) over the seconds with measured_s > 0 is the throughput of the turns.
Where several workers made the load, each has rows of its own and an equal share of measured_s: sums over
workers are right, as are sums over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns
from loadgen.metrics.seconds import LONGEST_S, SECOND_NS, Seconds, by_second
from loadgen.metrics.turns import Turn
from loadgen.record import MEASURE, WARMUP
from loadgen.report.load import EngineData

IDLE = "idle"
LOCAL = "local"

Fields = dict[str, Any]


@dataclass(slots=True)
class _Second:
    """Sums of one second of one engine and worker; its `turn` is the one with most of the time."""

    phase: str = IDLE
    measured_s: float = 0.0
    tokens: float = 0.0
    in_flight: float = 0.0
    completions: int = 0
    failures: int = 0
    first_tokens: int = 0
    ttft_sum_ms: float = 0.0
    turn: Turn | None = None
    turn_share_s: float = 0.0

    def add(self, part: Seconds, k: int) -> None:
        self.measured_s += float(part.measured_s[k])
        self.tokens += float(part.tokens[k])
        self.in_flight += float(part.in_flight[k])
        self.completions += int(part.completions[k])
        self.failures += int(part.failures[k])
        self.first_tokens += int(part.first_tokens[k])
        self.ttft_sum_ms += float(part.ttft_sum_ms[k])

    def fields(self, workers: int) -> Fields:
        out: Fields = {
            "tokens": self.tokens,
            "tokens_per_s": self.tokens,
            "in_flight": self.in_flight,
            "completions": float(self.completions),
            "failures": float(self.failures),
            "measured_s": min(self.measured_s, 1.0) / workers,
        }
        if self.first_tokens:
            out["ttft_ms"] = self.ttft_sum_ms / self.first_tokens
        return out


@dataclass
class WindowRows:
    """The windows of all engines: `seconds[engine, worker][t_ns]`, where there was something."""

    workers: list[str]
    seconds: dict[tuple[str, str], dict[int, _Second]] = field(default_factory=dict)

    def rows(self, idle: Iterable[int]) -> Iterator[tuple[int, str, str, Fields]]:
        """(t_ns, engine, worker, fields) by time; `idle` are seconds that get rows even of nothing."""
        moments = set(idle)
        for mine in self.seconds.values():
            moments.update(mine)
        empty = _Second()
        for t_ns in sorted(moments):
            for (engine, worker), mine in self.seconds.items():
                second = mine.get(t_ns, empty)
                fields = second.fields(len(self.workers)) | {"provisional": 0.0, "phase": second.phase}
                if second.turn is not None:
                    fields["turn"] = float(second.turn.turn)
                    fields["block"] = float(second.turn.block)
                    fields["turn_s"] = max(0.0, (t_ns - second.turn.start_ns) / 1e9)
                yield t_ns, engine, worker, fields


def window_rows(engines: Mapping[str, EngineData], workers: Iterable[str] = ()) -> WindowRows:
    """The wall seconds of all engines. `workers` are known to exist beside those that the records name."""
    found = WindowRows(_workers(engines, workers))
    for name, engine in engines.items():
        for worker in found.workers:
            found.seconds[name, worker] = _seconds_of(engine, worker)
    return found


def aligned_rows(
    engines: Mapping[str, EngineData], start_ns: int, workers: Iterable[str] = ()
) -> Iterator[tuple[int, str, str, Fields]]:
    """(t_ns, engine, worker, fields) of the seconds of every turn, counted from the turn's own start and put
    at `start_ns` + those seconds + the turn's index in nanoseconds, which keeps the points of turns apart."""
    names = _workers(engines, workers)
    for name, engine in engines.items():
        for worker in names:
            rows = _measured(engine.columns) & (engine.columns.word["worker"] == worker)
            for turn in engine.turns:
                mine = rows & (engine.columns.whole["turn"] == turn.turn)
                part = by_second(engine.columns, mine, turn, origin_ns=turn.start_ns)
                for k in range(len(part)):
                    second = _Second(phase=MEASURE)
                    second.add(part, k)
                    fields = second.fields(len(names))
                    fields |= {"turn": float(turn.turn), "block": float(turn.block), "turn_s": float(k)}
                    yield start_ns + k * SECOND_NS + turn.turn, name, worker, fields


def _workers(engines: Mapping[str, EngineData], more: Iterable[str]) -> list[str]:
    names = set(more)
    for engine in engines.values():
        names.update(str(w) for w in np.unique(engine.columns.word["worker"].astype(str)))
    return sorted(names) or [LOCAL]


def _measured(columns: Columns) -> Any:
    return columns.word["phase"] != WARMUP


def _seconds_of(engine: EngineData, worker: str) -> dict[int, _Second]:
    columns = engine.columns
    measured = _measured(columns)
    mine = columns.word["worker"] == worker
    out: dict[int, _Second] = {}
    for turn in engine.turns:
        part = by_second(columns, measured & mine & (columns.whole["turn"] == turn.turn), turn)
        for k in range(len(part)):
            second = out.setdefault(part.start_ns + k * SECOND_NS, _Second(phase=MEASURE))
            second.add(part, k)
            if second.turn is None or part.measured_s[k] > second.turn_share_s:
                second.turn, second.turn_share_s = turn, float(part.measured_s[k])
    during_turns = set(out)
    for turn_number in np.unique(columns.whole["turn"][~measured & mine]):
        rows = ~measured & mine & (columns.whole["turn"] == turn_number)
        part = by_second(columns, rows, _span(columns, rows))
        for k in range(len(part)):
            t_ns = part.start_ns + k * SECOND_NS
            if t_ns not in during_turns:
                second = out.setdefault(t_ns, _Second(phase=WARMUP))
                second.add(part, k)
                second.measured_s = 0.0
    return out


def _span(columns: Columns, rows: Any) -> Turn:
    """From the first of the rows that was sent to the end of the last one."""
    sent_ns = columns.whole["sent_ns"]
    rows = rows & (sent_ns > 0)
    if not rows.any():
        return Turn(0, 0, 0, 0, 0.0)
    gone_ns = sent_ns[rows] + np.round(columns.gone_ms()[rows] * 1e6).astype(np.int64)
    start_ns, end_ns = int(sent_ns[rows].min()), int(gone_ns.max())
    return Turn(0, 0, start_ns, end_ns, min((end_ns - start_ns) / 1e9, LONGEST_S + 1.0))
