"""Runs with a known share of slow requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loadgen.store import RunDir
from tests.unit.metrics.rows import row
from tests.unit.report.made import make_run


def request(n: int, turn: int, ttft_ms: float, engine: str = "e", **values: Any) -> dict[str, Any]:
    """One a second, 10 tokens each, with 10 ms between them."""
    events = [round(ttft_ms * 1000) + 10_000 * k for k in range(10)]
    base: dict[str, Any] = {
        "engine": engine,
        "turn": turn,
        "block": turn // 2,
        "sequence": n,
        "output_tokens": 10,
        "prompt_tokens": 50,
        "tpot_ms": 10.0,
        "event_us": events,
    }
    return row(n, (events[-1] + 100) / 1e6, **{**base, **values})


def slow_run(
    runs_dir: Path,
    turns: Sequence[Sequence[float]],
    *,
    engine: str = "e",
    complete: Sequence[bool] = (),
    **made: Any,
) -> RunDir:
    """A run of one engine: `turns` are the TTFTs in ms of each turn's requests, `complete` which of them
    are (default: all)."""
    rows, windows, n = [], [], 0
    for number, ttfts in enumerate(turns):
        start = n
        for ttft in ttfts:
            rows.append(request(n, number, ttft, engine))
            n += 1
        whole = complete[number] if complete else True
        windows.append((engine, number, float(start), float(n), whole))
    return make_run(runs_dir, rows, engines=[{"name": engine}], turns=windows, **made)
