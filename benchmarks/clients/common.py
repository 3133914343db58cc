"""What every client script shares: the request, its arguments, how it reports."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}


def body(tokens: int) -> bytes:
    """About 60 words of prompt, as the other clients send."""
    return json.dumps(
        {
            "model": "truth",
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": tokens,
            "messages": [{"role": "user", "content": "hello " * 60}],
        }
    ).encode()


def arguments() -> tuple[str, int, int, int, str]:
    """URL STREAMS ROUNDS TOKENS ROWS_FILE"""
    url, streams, rounds, tokens, rows = sys.argv[1:6]
    return url, int(streams), int(rounds), int(tokens), rows


def cpu_s() -> float:
    """User plus system time of this process so far."""
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def report(rows_file: str, rows: list[dict[str, Any]], cpu: float) -> None:
    """Rows for accuracy.py into the file, the cost as one JSON line to standard output."""
    with open(rows_file, "w") as out:
        for row in rows:
            out.write(json.dumps(row) + "\n")
    print(json.dumps({"cpu_s": cpu}), flush=True)


def row(response_id: str, sent_ns: int, times: list[tuple[int, int]]) -> dict[str, Any]:
    """A row out of (number of the read, nanoseconds since sent) of every text event."""
    return {
        "id": response_id,
        "sent_ns": sent_ns,
        "ttft_ms": times[0][1] / 1e6 if times else None,
        "event_us": [t // 1000 for _, t in times],
        "coalesced": [i for i in range(len(times) - 1) if times[i][0] == times[i + 1][0]],
    }
