"""What a client reported against what truthd really sent. Pure: rows in, figures out.

A row is one response as a client saw it: {"id": "chatcmpl-7", "sent_ns": wall ns, "ttft_ms": x,
"event_us": [...], "coalesced": [indices of event_us that were read together with a later event],
"inexact": whether the client itself says that its TTFT is}.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def percentile(values: Sequence[float], p: float) -> float | None:
    """Nearest rank: index floor(n p / 100 + 0.5) - 1 of the sorted values; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(max(math.floor(len(ordered) * p / 100 + 0.5) - 1, 0), len(ordered) - 1)]


def compare(rows: Iterable[Mapping[str, Any]], truth: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Errors in milliseconds, absolute values unless `bias` is in the name.

    ttft_*      reported TTFT against (first token's write - request complete in the server's kernel), request
                by request: all that the client adds between what it calls `sent` and what it reports
    arrival_*   (sent + reported TTFT) against the wall time of the first token's write: the reading alone
    send_*      request complete in the server's kernel after `sent`: the writing alone
    server_*    how long a request then waited for truthd to read it, which is no client's fault
    gap_*       gaps between consecutive text events, both read alone (not merged with a later one)
    marked      responses whose first token is known to be inexact, because it merged with a later event
    unmarked    first tokens more than 1 ms late on arrival that are not marked
    """
    ttft: list[float] = []
    bias: list[float] = []
    arrival: list[float] = []
    send: list[float] = []
    waited: list[float] = []
    gaps: list[float] = []
    events = coalesced = marked = unmarked = unmatched = 0
    for row in rows:
        true = truth.get(_number(row.get("id")))
        if true is None or row.get("ttft_ms") is None or len(row["event_us"]) != true["tokens"]:
            unmatched += 1
            continue
        first_ms = (true["first"] - true["recv"]) / 1e6
        late_ms = (row["sent_ns"] - true["first"]) / 1e6 + row["ttft_ms"]
        bias.append(row["ttft_ms"] - first_ms)
        ttft.append(abs(bias[-1]))
        arrival.append(abs(late_ms))
        send.append((true["recv"] - row["sent_ns"]) / 1e6)
        waited.append(true["read"] / 1000)
        together = frozenset(row["coalesced"])
        events += len(row["event_us"])
        coalesced += len(together)
        inexact = 0 in together or bool(row.get("inexact"))
        marked += inexact
        unmarked += late_ms > 1.0 and not inexact
        seen, sent = row["event_us"], true["t"]
        gaps.extend(
            abs((seen[i] - seen[i - 1]) - (sent[i] - sent[i - 1])) / 1000
            for i in range(1, len(seen))
            if i not in together and i - 1 not in together
        )
    return {
        "responses": len(ttft),
        "unmatched": unmatched,
        "ttft_bias_p50_ms": percentile(bias, 50),
        "ttft_p50_ms": percentile(ttft, 50),
        "ttft_p99_ms": percentile(ttft, 99),
        "ttft_max_ms": max(ttft, default=None),
        "arrival_p50_ms": percentile(arrival, 50),
        "arrival_p99_ms": percentile(arrival, 99),
        "send_p99_ms": percentile(send, 99),
        "server_p99_ms": percentile(waited, 99),
        "gap_p50_ms": percentile(gaps, 50),
        "gap_p99_ms": percentile(gaps, 99),
        "gaps_alone": len(gaps),
        "events": events,
        "coalesced": coalesced,
        "marked": marked,
        "unmarked": unmarked,
    }


def _number(response_id: object) -> int:
    """7 of "chatcmpl-7"; -1 of anything else."""
    tail = str(response_id).rpartition("-")[2]
    return int(tail) if tail.isdigit() else -1
