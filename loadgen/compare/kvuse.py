"""How much KV cache an engine's requests needed at once: from its own gauge, or from the records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns
from loadgen.record import WARMUP

ENOUGH = 10  # readings of a cache in use, below which its peak has likely been missed


def most_used_share(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The largest `kv_used_share` (0 to 1) of each engine in rows of engine.jsonl that show it in use in ten
    readings or more. It is read once a second: a short peak between two readings is not in it."""
    most: dict[str, float] = {}
    readings: Counter[str] = Counter()
    for row in rows:
        engine, share = row.get("engine"), row.get("kv_used_share")
        if isinstance(engine, str) and isinstance(share, (int, float)) and not isinstance(share, bool):
            most[engine] = max(float(share), most.get(engine, 0.0))
            readings[engine] += share > 0
    return {engine: share for engine, share in most.items() if readings[engine] >= ENOUGH}


def most_tokens_in_flight(columns: Columns, slots: int | None = None) -> int | None:
    """The largest sum of prompt and output tokens of the measured requests that were in flight at once, each
    counted at its full length from its start: no less than what the cache held for them, but for prefixes
    kept of requests that had ended. With a number of `slots` (others wait outside the cache) it is at most
    that many of the longest request. None if no request has both numbers."""
    prompt, output = columns.number["prompt_tokens"], columns.number["output_tokens"]
    sent_ns = columns.whole["sent_ns"]
    rows = (columns.word["phase"] != WARMUP) & np.isfinite(prompt) & np.isfinite(output) & (sent_ns > 0)
    if not rows.any():
        return None
    tokens = prompt[rows] + output[rows]
    start_ns = sent_ns[rows]
    end_ns = start_ns + np.round(columns.gone_ms()[rows] * 1e6).astype(np.int64)
    times = np.concatenate((start_ns, end_ns))
    change = np.concatenate((tokens, -tokens))
    # At one instant, what ends makes room before what starts takes it.
    order = np.lexsort((change > 0, times))
    most = int(np.cumsum(change[order]).max())
    return min(most, slots * int(tokens.max())) if slots else most
