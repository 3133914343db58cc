"""Rows of a journal for the tests: only what matters is said, times in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from loadgen.metrics import ColumnBuilder, Columns
from loadgen.record import RequestRecord

T0 = 1_800_000_000_000_000_000  # wall nanoseconds


def row(sent_s: float = 0.0, complete_s: float | None = None, **values: Any) -> dict[str, Any]:
    """A journal row as it is read back, sent at T0 + sent_s; TTFT and e2e are those of its events."""
    events = values.get("event_us", [])
    times = {"ttft_ms": events[0] / 1e3, "e2e_ms": events[-1] / 1e3} if events else {}
    complete = {} if complete_s is None else {"complete_ms": complete_s * 1e3}
    record = RequestRecord(sent_ns=T0 + round(sent_s * 1e9), **{**times, **complete, **values})
    loaded: dict[str, Any] = orjson.loads(record.to_json())
    return loaded


def columns(rows: Iterable[dict[str, Any]]) -> Columns:
    builder = ColumnBuilder()
    for r in rows:
        builder.add(r)
    return builder.build()


# Five requests and a window from 0 s to 10 s, worked out by hand in test_window.py and test_summary.py.
FIVE = [
    row(
        0,
        1,
        engine="e",
        output_tokens=5,
        event_us=[100_000, 200_000, 300_000, 400_000],
        event_tokens=[1, 2, 1, 1],
    ),
    row(1, 2, engine="e", output_tokens=4, event_us=[200_000, 400_000]),
    row(2, 4, engine="e", outcome="failed", error="truncated", event_us=[300_000]),
    row(-1, 3, engine="e", output_tokens=5, event_us=[500_000, 1_500_000], event_tokens=[3, 2]),
    row(8, 3, engine="e", output_tokens=8, event_us=[1_500_000, 1_900_000, 2_500_000, 3_000_000]),
]
