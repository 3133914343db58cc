"""Feed: what a run writes into its directory, followed while it does, for the live page.

The rows are read from the files, not handed over, so that a live page costs the measurement nothing but a
little reading once a second; records are told one by one, since their journal holds every event.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from loadgen.metrics.percentiles import rank
from loadgen.plain import clean
from loadgen.record import CANCELLED, OK, WARMUP, RequestRecord
from loadgen.sinks.tail import read_chunk
from loadgen.store import RunDir
from loadgen.store import events as kinds
from loadgen.webui.figures import Figures
from loadgen.webui.history import LAST, MOST, Figure, History

ROLLING_S = 30.0
ROLLING = 2_000  # requests at most of that half minute
READ_BYTES = 512 * 1024  # of one file and second
ENGINE, GPU = "engine", "gpu"

ENGINE_FIGURES = (
    Figure("tokens_per_s"),
    Figure("in_flight"),
    Figure("users"),
    Figure("completions"),
    Figure("failures"),
    Figure("ttft_p50_ms", LAST),
    Figure("ttft_p95_ms", LAST),
    Figure("ttft_p99_ms", LAST),
    Figure("lag_ms", MOST),
    Figure("running"),
    Figure("waiting"),
    Figure("kv_used_share"),
)
GPU_FIGURES = (
    Figure("sm_clock_mhz"),
    Figure("temperature_c", MOST),
    Figure("power_w"),
    Figure("memory_gb"),
    Figure("utilization_percent"),
)
KINDS = {ENGINE: ENGINE_FIGURES, GPU: GPU_FIGURES}

_REGIONS = {kinds.TURN_START: "turn", kinds.WARMUP_START: "warmup"}
_ENDS = {kinds.TURN_END: "turn", kinds.WARMUP_END: "warmup"}
_SILENT = (kinds.NOTE, kinds.COOLDOWN_START, kinds.RUN_START, kinds.RUN_END, kinds.USERS)
_NOT_SAID = ("t_ns", "mono_ns", "kind", "title", "text", "engine", "turn", "block")


class Feed:
    """Reads on with each `tick`, once a second."""

    def __init__(
        self, run: RunDir, history: History, figures: Figures, wall_s: Callable[[], float] = time.time
    ) -> None:
        self._history = history
        self._figures = figures
        self._wall_s = wall_s
        self._files: dict[Path, tuple[int, Callable[[Mapping[str, Any]], None]]] = {
            run.windows_path: (0, self._second),
            run.events_path: (0, self._event),
            run.engine_path: (0, self._engine),
            run.gpu_path: (0, self._gpu),
        }
        self._recent: dict[str, tuple[tuple[int, bool], deque[tuple[float, float]]]] = {}
        self._busy: dict[str, int] = {}  # the last second in which an engine had work

    def record(self, record: RequestRecord) -> None:
        """A request has ended."""
        if record.outcome == CANCELLED:
            return
        self._figures.add(record)
        if record.outcome == OK and record.ttft_ms is not None:
            part = record.turn, record.phase == WARMUP
            before, ttfts = self._recent.get(record.engine, (None, deque(maxlen=ROLLING)))
            if before != part:
                ttfts.clear()
                self._recent[record.engine] = part, ttfts
            ttfts.append((time.monotonic(), record.ttft_ms))

    def tick(self) -> None:
        """Never raises for what is in a file, nor for one that is not there."""
        for path, (offset, take) in self._files.items():
            try:
                chunk = read_chunk(path, offset, max_bytes=READ_BYTES)
            except OSError:
                continue
            for line in chunk.lines:
                try:
                    row = orjson.loads(line)
                    take(row)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
            self._files[path] = chunk.end, take
        self._percentiles()

    def _percentiles(self) -> None:
        second, now = int(self._wall_s()) - 1, time.monotonic()
        for engine, (_, ttfts) in self._recent.items():
            while ttfts and ttfts[0][0] < now - ROLLING_S:
                ttfts.popleft()
            if ttfts and self._busy.get(engine, 0) >= second - 1:
                values = sorted(v for _, v in ttfts)
                found = {f"ttft_p{p}_ms": values[rank(len(values), p)] for p in (50, 95, 99)}
                self._history.put(ENGINE, engine, second, {**found})

    # --- rows ----------------------------------------------------------------------------------------------

    def _second(self, row: Mapping[str, Any]) -> None:
        self._figures.second(row)
        if row["phase"] == "idle" and not row.get("in_flight"):
            return
        engine, t = str(row["engine"]), int(row["t_ns"]) // 10**9
        self._busy[engine] = max(t, self._busy.get(engine, 0))
        tokens = (row.get("tokens") or 0) * self._figures.tokens_per_event(engine)
        values = {
            "tokens_per_s": tokens,
            "in_flight": row.get("in_flight"),
            "users": row.get("users"),
            "completions": row.get("completions"),
            "failures": row.get("failures"),
            "lag_ms": row.get("loop_lag_ms"),
        }
        self._history.put(ENGINE, engine, t, values, add=True)

    def _engine(self, row: Mapping[str, Any]) -> None:
        if "error" in row:
            return
        values = {name: row.get(name) for name in ("running", "waiting", "kv_used_share")}
        self._history.put(ENGINE, str(row["engine"]), int(row["t_ns"]) // 10**9, values)

    def _gpu(self, row: Mapping[str, Any]) -> None:
        if row.get("kind") != "sample":
            return
        name = clean(f"GPU {row['gpu']} on {row['host']}" if row.get("host") else f"GPU {row['gpu']}", 60)
        memory = row.get("memory_used_bytes")
        values = {f: row.get(f) for f in ("sm_clock_mhz", "temperature_c", "power_w")}
        values["utilization_percent"] = row.get("utilization_percent")
        values["memory_gb"] = None if memory is None else memory / 2**30
        self._history.put(GPU, name, int(row["t_ns"]) // 10**9, values)

    def _event(self, row: Mapping[str, Any]) -> None:
        kind, t, version = str(row["kind"]), int(row["t_ns"]) / 1e9, self._history.next()
        marks = self._history.marks
        where = {k: row[k] for k in ("engine", "turn") if k in row}
        if kind in _REGIONS:
            marks.add(version, _REGIONS[kind], t, end=True, **where)
        elif kind in _ENDS:
            where = {"engine": row["engine"]} if "engine" in row else {}
            marks.end(version, _ENDS[kind], t, **where)
        elif kind not in _SILENT:
            marks.add(version, "moment", t, end=False, text=_words(row))
        if kind == kinds.WORKER_LOST:
            self._figures.doubts.append(f"worker {clean(row.get('worker', ''), 40)} was lost")


def _words(row: Mapping[str, Any]) -> str:
    """`level: users 8`, of an event of any kind."""
    if text := row.get("title") or row.get("text"):
        return clean(text, 60)
    facts = ", ".join(
        f"{k} {v}" for k, v in row.items() if k not in _NOT_SAID and isinstance(v, (str, int, float))
    )
    return clean(f"{str(row['kind']).replace('_', ' ')}{': ' if facts else ''}{facts}", 60)
