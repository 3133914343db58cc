"""RequestRecord: the one row that everything downstream reads.

The names below are the journal's, InfluxDB's, the summary's and the report's. Durations are float
milliseconds and end in `_ms`; points in time are integer nanoseconds and end in `_ns`. A value that does
not exist (no token came, the server reports no cache) is None, never 0.

All durations of a request count from `sent`, the moment just before its first byte is written; the
definitions are in docs/method.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import orjson

OK = "ok"
FAILED = "failed"
CANCELLED = "cancelled"

WARMUP = "warmup"
MEASURE = "measure"
DRAIN = "drain"


@dataclass(slots=True)
class RequestRecord:
    """One request, from the schedule to its last token.

    `event_us` holds the arrival of every text-bearing event, in microseconds since `sent`; `event_tokens`
    the number of tokens each of them carried, where the server says so, else None. `coalesced` lists the
    indices into `event_us` whose time is only an upper bound, because the kernel had merged that segment
    with a later one before it was read; `coalesced_error_ms` is the most that any of them can be late.
    """

    # Which request this is.
    run: str = ""
    scenario: str = ""
    engine: str = ""
    model: str = ""
    worker: str = "local"
    host: str | None = None  # the worker's; the manifest names the host of a run that has none
    user: int = 0
    sequence: int = 0
    turn: int = 0
    block: int = 0
    phase: str = MEASURE
    pair: int = -1
    traffic_class: str | None = None  # where requests of several kinds are mixed
    response_id: str | None = None
    # What became of it.
    outcome: str = OK
    error: str | None = None
    error_text: str | None = None
    status: int | None = None
    finish_reason: str | None = None
    short_answer: bool = False
    # When (wall clock, nanoseconds). point_ns is unique and increasing per worker: the time in InfluxDB.
    point_ns: int = 0
    scheduled_ns: int | None = None
    sent_ns: int = 0
    # Durations from `sent`.
    headers_ms: float | None = None
    first_event_ms: float | None = None
    ttft_ms: float | None = None
    ttfa_ms: float | None = None
    e2e_ms: float | None = None
    complete_ms: float | None = None  # the end of the response as seen, or of the request where it broke off
    tpot_ms: float | None = None
    # The connection, the generator's own lag, and how far a time may be off.
    connect_ms: float | None = None
    connection_reused: bool = False
    replica: int | None = None  # which of the engine's addresses, from 0; of one that has several
    send_lag_ms: float | None = None
    read_lag_ms: float | None = None
    first_event_error_ms: float = 0.0
    ttft_error_ms: float = 0.0
    ttfa_error_ms: float = 0.0
    e2e_error_ms: float = 0.0
    clock: str = "kernel"
    clock_step: bool = False
    # Tokens, as counted by `token_source`: usage, timings or events.
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    asked_output_tokens: int | None = None
    cached_tokens: int | None = None
    first_event_tokens: int | None = None
    token_source: str | None = None
    server_timings: dict[str, Any] | None = None
    # The stream itself.
    response_bytes: int = 0
    events: int = 0
    coalesced_events: int = 0
    coalesced_error_ms: float = 0.0
    event_us: list[int] = field(default_factory=list)
    event_tokens: list[int] | None = None
    coalesced: list[int] = field(default_factory=list)

    def to_json(self) -> bytes:
        """One journal line without its newline. Fields that are None are left out."""
        return orjson.dumps({k: v for k in _NAMES if (v := getattr(self, k)) is not None})

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> RequestRecord:
        """The record of one journal line; names that this version does not know are dropped."""
        return cls(**{k: v for k, v in row.items() if k in _KNOWN})


_NAMES = tuple(f.name for f in fields(RequestRecord))
_KNOWN = frozenset(_NAMES)
