"""Counts: what became of the requests, and their tokens."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from loadgen.metrics.columns import Bools, Columns
from loadgen.record import CANCELLED, FAILED, OK


def count(columns: Columns, rows: Bools) -> dict[str, Any]:
    """Of the picked rows: requests by outcome, failures by kind, and sums of tokens.

    Token figures are of successful requests. A sum is None where no request reported the number. A request
    is `inexact` if the kernel had merged an event of its stream with a later one, so that a time of it is
    only an upper bound. `output_as_asked` counts requests that got exactly the tokens they asked for, out of
    `output_asked`.
    """
    outcome = columns.word["outcome"]
    ok = rows & (outcome == OK)
    failed = rows & (outcome == FAILED)
    kinds = Counter(k or "unknown" for k in columns.word["error"][failed])
    merged = np.nan_to_num(columns.number["coalesced_events"])
    inexact = merged > 0
    for name in ("first_event_error_ms", "ttft_error_ms", "ttfa_error_ms", "e2e_error_ms"):
        inexact |= np.nan_to_num(columns.number[name]) > 0
    asked = columns.number["asked_output_tokens"]
    got = columns.number["output_tokens"]
    return {
        "requests": int(rows.sum()),
        "ok": int(ok.sum()),
        "failed": int(failed.sum()),
        "failed_by_kind": dict(sorted(kinds.items())),
        "cancelled": int((rows & (outcome == CANCELLED)).sum()),
        "short_answers": int((ok & columns.flag["short_answer"]).sum()),
        **_replicas(columns, rows),
        "events": int(np.diff(columns.starts)[ok].sum()),
        "coalesced_events": int(merged[ok].sum()),
        "inexact_requests": int((ok & inexact).sum()),
        "inexact_ttft": int((ok & (np.nan_to_num(columns.number["ttft_error_ms"]) > 0)).sum()),
        "clock_steps": int((ok & columns.flag["clock_step"]).sum()),
        "clock": dict(sorted(Counter(c or "unknown" for c in columns.word["clock"][ok]).items())),
        "token_source": dict(sorted(Counter(s or "none" for s in columns.word["token_source"][ok]).items())),
        "prompt_tokens": _sum(columns, "prompt_tokens", ok),
        "prompt_tokens_min": _edge(columns, "prompt_tokens", ok, min),
        "prompt_tokens_max": _edge(columns, "prompt_tokens", ok, max),
        "output_tokens": _sum(columns, "output_tokens", ok),
        "asked_output_tokens": _sum(columns, "asked_output_tokens", ok),
        "output_asked": int((ok & ~np.isnan(asked)).sum()),
        "output_as_asked": int((ok & (asked == got)).sum()),
        "cached_tokens": _sum(columns, "cached_tokens", ok),
        "cached_tokens_max": _edge(columns, "cached_tokens", ok, max),
        "cached_reported": int((ok & ~np.isnan(columns.number["cached_tokens"])).sum()),
    }


def _replicas(columns: Columns, rows: Bools) -> dict[str, dict[str, int]]:
    """Requests by replica; nothing of an engine that has one address."""
    numbers, counts = np.unique(_values(columns, "replica", rows), return_counts=True)
    if not len(numbers):
        return {}
    return {"replicas": {f"{k:.0f}": int(n) for k, n in zip(numbers, counts, strict=True)}}


def _values(columns: Columns, name: str, rows: Bools) -> Any:
    values = columns.number[name][rows]
    return values[~np.isnan(values)]


def _sum(columns: Columns, name: str, rows: Bools) -> int | None:
    values = _values(columns, name, rows)
    return int(values.sum()) if len(values) else None


def _edge(columns: Columns, name: str, rows: Bools, which: Any) -> int | None:
    values = _values(columns, name, rows)
    return int(which(values)) if len(values) else None
