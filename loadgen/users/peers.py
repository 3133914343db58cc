"""What the master knows of its worker processes, and of each one's part of a batch."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import time
from dataclasses import dataclass, field
from typing import Any

from gevent.event import Event

from loadgen.users.clocks import WorkerClock

GONE_STATES = ("missing", "quit")  # Locust's
HELLO_S = 30.0


@dataclass(eq=False)
class Worker:
    """One worker process. `id` is Locust's, `name` its tag: w0, w1, ...; `users` is how many have joined."""

    id: str
    name: str
    host: str = ""
    users: int = 0
    since_s: float = field(default_factory=time.monotonic)
    told: bool = False  # what is measured
    greeted: bool = False  # it can take part
    clock: WorkerClock = field(default_factory=WorkerClock)
    last_point_ns: int = 0
    events: dict[str, int] = field(default_factory=dict)  # raw events so far, by engine
    records: int = 0
    gone: Event = field(default_factory=Event)

    def __str__(self) -> str:
        return f"worker {self.name} on {self.host}" if self.host else f"worker {self.name}"

    def facts(self) -> dict[str, Any]:
        """For the manifest: name, host, clock, and the records that came from it."""
        best = self.clock.best
        return {
            "worker": self.name,
            "host": self.host,
            "clock_offset_ms": self.clock.offset_ns / 1e6,
            "round_trip_ms": best.round_trip_ns / 1e6 if best else None,
            "records": self.records,
        }


@dataclass(eq=False)
class Part:
    """A worker's part of a batch: `jobs` requests. `ready` when it can begin, `done` when none is left;
    `late`: it came when the batch had begun."""

    worker: Worker
    jobs: int
    ready: Event = field(default_factory=Event)
    done: bool = False
    late: bool = False
