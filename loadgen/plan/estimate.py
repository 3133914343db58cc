"""What a load needs: workers, cores, memory, network, disk. Pure."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from loadgen.plan.cost import Cost

# A process that is busier answers its sockets and its timers late.
BUSY = 0.70
# An event on the wire: chunks of recorded streams have 223 bytes (vLLM) and 242 (llama.cpp) on average, and
# each is a packet of its own, with 66 bytes of Ethernet, IP and TCP, as its acknowledgement is.
WIRE_EVENT_BYTES = 320
WIRE_ACK_BYTES = 66
WIRE_REQUEST_BYTES = 1500  # head and handshake
TEXT_TOKEN_BYTES = 5
DESCRIPTORS = 100  # of a process, besides a stream's each
LOCUST_DESCRIPTORS = 10_000  # Locust raises its soft limit to so many


@dataclass(frozen=True)
class Load:
    """`concurrency` streams at once of `tokens_per_second` each; a request takes `ttft_s` and its output. An
    open loop sends `rate` a second, and its streams at once are an average."""

    concurrency: int
    tokens_per_second: float
    events_per_token: float = 1.0
    prompt_tokens: int = 50
    output_tokens: int = 256
    ttft_s: float = 0.5
    rate: float | None = None

    def at_rate(self, rate: float) -> Load:
        """An open loop of `rate` requests a second, while the server keeps up."""
        return replace(self, rate=rate, concurrency=max(1, math.ceil(rate * self.request_s)))

    @property
    def request_s(self) -> float:
        """From sent to the last token."""
        return self.ttft_s + self.output_tokens / self.tokens_per_second

    @property
    def requests_per_s(self) -> float:
        """Little's law: what is in flight, over how long it is."""
        return self.rate or self.concurrency / self.request_s

    @property
    def events_per_request(self) -> float:
        return self.output_tokens * self.events_per_token

    @property
    def events_per_s(self) -> float:
        """At most: while all streams are past their first token."""
        return self.concurrency * self.tokens_per_second * self.events_per_token


@dataclass(frozen=True)
class Plan:
    """`busy` and `master_busy` are shares of one core. A master there is with two workers or more."""

    load: Load
    workers: int
    busy: float  # of each worker
    master_busy: float | None
    cores: int
    streams: int  # of the worker that has most
    descriptors: int
    memory_mb: float  # of all processes
    received_mbit_s: float
    sent_mbit_s: float
    channel_mbit_s: float | None  # from all workers to the master
    journal_mb_an_hour: float
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        rates = {"requests_per_s": self.load.requests_per_s, "events_per_s": self.load.events_per_s}
        return {**asdict(self), "load": {**asdict(self.load), **rates}, "notes": list(self.notes)}


def plan_for(load: Load, cost: Cost, *, busy: float = BUSY) -> Plan:
    """What `load` needs where an event and a request cost as much as `cost` says, with no worker busier than
    `busy` (a share of a core)."""
    alone = _seconds(load, cost.event_us, cost.request_us)
    workers, each = 1, alone
    if alone > busy or load.concurrency + DESCRIPTORS > LOCUST_DESCRIPTORS:
        shared = _seconds(load, cost.event_us + cost.send_event_us, cost.request_us + cost.send_request_us)
        fit = math.ceil(load.concurrency / (LOCUST_DESCRIPTORS - DESCRIPTORS))
        workers = max(2, math.ceil(shared / busy), fit)
        each = shared / workers
    several = workers > 1
    streams = math.ceil(load.concurrency / workers)
    journal = load.requests_per_s * (
        cost.journal_request_bytes + load.events_per_request * cost.journal_event_bytes
    )
    master = _seconds(load, cost.master_event_us, cost.master_request_us) if several else None
    memory = workers * (cost.memory_mb + streams * cost.memory_stream_kb / 1000) + several * cost.memory_mb
    request_bytes = WIRE_REQUEST_BYTES + load.prompt_tokens * TEXT_TOKEN_BYTES
    return Plan(
        load=load,
        workers=workers,
        busy=each,
        master_busy=master,
        cores=workers + several + 1,
        streams=streams,
        descriptors=streams + DESCRIPTORS,
        memory_mb=memory,
        received_mbit_s=load.events_per_s * WIRE_EVENT_BYTES * 8 / 1e6,
        sent_mbit_s=(load.events_per_s * WIRE_ACK_BYTES + load.requests_per_s * request_bytes) * 8 / 1e6,
        channel_mbit_s=journal * cost.channel_share * 8 / 1e6 if several else None,
        journal_mb_an_hour=journal * 3600 / 1e6,
        notes=_notes(load, master, busy),
    )


def _seconds(load: Load, event_us: float, request_us: float) -> float:
    """CPU seconds in a second."""
    return (load.events_per_s * event_us + load.requests_per_s * request_us) / 1e6


def _notes(load: Load, master: float | None, busy: float) -> tuple[str, ...]:
    notes = []
    if master is not None and master > busy:
        notes.append(
            f"the master would be {master * 100:.0f} % busy with the records of its workers: measure in "
            "parts, as runs of fewer streams on machines of their own"
        )
    if load.events_per_token < 1:
        notes.append("several tokens an event: fewer events, and their times are those of the events")
    return tuple(notes)
