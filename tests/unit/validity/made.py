"""Evidence of a clean run, in which the tests plant one fault at a time."""

from __future__ import annotations

from typing import Any

from loadgen.metrics.turns import Turn
from loadgen.validity import Evidence

S = 10**9
CLEAN_COUNTS: dict[str, Any] = {
    "requests": 384,
    "ok": 384,
    "failed": 0,
    "short_answers": 0,
    "events": 384 * 256,
    "coalesced_events": 384,  # the last of each stream
    "inexact_requests": 384,
    "inexact_ttft": 0,
    "clock_steps": 0,
    "clock": {"kernel": 384},
}


def engine(counts: dict[str, Any] | None = None, window: dict[str, Any] | None = None, **more: Any) -> Any:
    turns = [{"turn": 2 * b, "block": b, "complete": True, "clock_stepped": False} for b in range(6)]
    return {
        "counts": {**CLEAN_COUNTS, **(counts or {})},
        "window": {
            "turns": turns,
            "turns_complete": 6,
            "littles_residual": 1e-6,
            "concurrency": 15.9,
            **(window or {}),
        },
        "send_lag_ms": {"p95": 0.4},
        "read_lag_ms": {"p95": 4.0},
        **more,
    }


def evidence(a: Any = None, **more: Any) -> Evidence:
    return Evidence(**{"state": "complete", "engines": {"a": a or engine(), "b": engine()}, **more})


TEN_TURNS = {
    "a": [Turn(2 * k, k, 40 * k * S, (40 * k + 18) * S, 18.0) for k in range(5)],
    "b": [Turn(2 * k + 1, k, (40 * k + 20) * S, (40 * k + 38) * S, 18.0) for k in range(5)],
}
