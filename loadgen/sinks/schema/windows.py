"""llm_window and llm_window_aligned: a point an engine and second."""

from __future__ import annotations

from dataclasses import replace

from loadgen.sinks.schema.model import (
    ENGINE,
    LOAD_HOST,
    MODEL,
    RUN,
    SCENARIO,
    WORKER,
    Field,
    Measurement,
    text,
)

LLM_WINDOW = Measurement(
    name="llm_window",
    meaning=(
        "One engine in one second, every second from the run's start to its end, 0 when it is not its turn. "
        "While the run goes on, points are provisional: raw events counted as they are read. When it is "
        "over, exact ones from the journal take their place, second by second. "
        "Over a turn, `sum(tokens) / sum(measured_s)` is its throughput."
    ),
    source="windows.jsonl, then derived.jsonl",
    time="start of the second",
    tags=(RUN, SCENARIO, ENGINE, MODEL, LOAD_HOST, WORKER),
    fields=(
        Field("tokens", "tokens that arrived in this second; raw events while provisional", "tokens"),
        Field("tokens_per_s", "the same, as a rate", "tokens/s"),
        Field("in_flight", "requests in flight, average over the second", "requests"),
        Field("users", "users there are; the generator's own count", "users"),
        Field("completions", "requests that ended well in this second", "requests"),
        Field("failures", "requests that failed in this second", "requests"),
        Field("measured_s", "how much of this second lies inside a measured turn of this engine", "s"),
        Field("turn", "turn, from 0; only inside one"),
        Field("block", "block, from 0; only inside a turn"),
        Field("turn_s", "time since that turn began", "s"),
        Field(
            "ttft_ms", "mean TTFT of requests whose first token came in this second; exact points only", "ms"
        ),
        Field("read_lag_ms", "longest that received bytes waited, of requests that ended in it", "ms"),
        Field("loop_lag_ms", "how late the generator's own timer for this second was", "ms"),
        Field("cpu_percent", "processor time of the generating process; 100 is one core", "%"),
        Field("provisional", "1 until the exact point is there, then 0"),
        text("phase", "`warmup`, `measure` or `idle`"),
    ),
)

_EXACT = (
    "tokens",
    "tokens_per_s",
    "in_flight",
    "completions",
    "failures",
    "measured_s",
    "turn",
    "block",
    "turn_s",
    "ttft_ms",
)

LLM_WINDOW_ALIGNED = replace(
    LLM_WINDOW,
    name="llm_window_aligned",
    meaning=(
        "The exact windows of measured turns, moved so that every turn begins when the run began: turns of "
        "both engines lie over each other."
    ),
    source="derived.jsonl",
    time="the run's start + turn_s (+ 1 ns a turn, so that points of two turns stay two)",
    fields=tuple(f for f in LLM_WINDOW.fields if f.name in _EXACT),
)
