"""Fleet: the master's crew. Its users are those of the workers, and it hands them the same batches.

A batch is divided beforehand: job number j goes to the worker of member j modulo all members, so each worker
has as many requests as its share of the users. Workers make the request bodies, say that they are ready, and
are then told to begin, all at once. Records come back in order and once; a worker that goes missing leaves
its part undone, and the turn incomplete.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gevent
import orjson
from gevent.event import Event

from loadgen import __version__
from loadgen.record import RequestRecord
from loadgen.users import messages
from loadgen.users.clocks import EXCHANGES, Sample, WorkerClock
from loadgen.users.crew import Batch, Crew
from loadgen.users.run import Run

log = logging.getLogger("loadgen")

READY_S = 60.0
WATCH_S = 0.5
BYE_S = 5.0
GONE_STATES = ("missing", "quit")


@dataclass(eq=False)
class Worker:
    """One worker process, as the master knows it. `name` is its tag: w0, w1, ..."""

    id: str
    name: str
    host: str = ""
    users: int = 0
    greeted: bool = False
    clock: WorkerClock = field(default_factory=WorkerClock)
    last_point_ns: int = 0
    events: dict[str, int] = field(default_factory=dict)  # raw events so far, by engine
    records: int = 0
    gone: Event = field(default_factory=Event)

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
class _Part:
    """A worker's part of a batch."""

    worker: Worker
    jobs: int
    ready: Event = field(default_factory=Event)
    done: bool = False


class Fleet(Crew):
    """`record_done` is called for each record that arrives,
    `lost` for each worker that has gone, `problem` with the sentence of a worker that cannot work."""

    def __init__(
        self,
        runner: Any,
        record_done: Callable[[RequestRecord], None],
        window_done: Callable[[bytes], None],
        lost: Callable[[Worker], None],
        problem: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.workers: dict[str, Worker] = {}
        self._runner = runner
        self._record_done = record_done
        self._window_done = window_done
        self._lost = lost
        self._problem = problem
        self._run: Run | None = None
        self._parts: dict[Batch, dict[str, _Part]] = {}
        self._numbers: dict[int, Batch] = {}
        self._count = 0
        self._watcher: gevent.Greenlet | None = None

    # --- what a crew is asked ------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return sum(b.total - b.finished for b in self.batches)

    def begin(self, batch: Batch, members: Sequence[Any], offsets_s: Sequence[float]) -> None:
        """Divide the batch, wait until every worker has its part ready, and let all begin."""
        members = [m for m in members if m[0] in self.workers] or list(self.users)
        offsets = list(offsets_s) if len(offsets_s) == len(members) else [0.0] * len(members)
        batch.members = dict.fromkeys(members, -1.0)
        number = self._count = self._count + 1
        shares: dict[str, list[Any]] = {m[0]: [] for m in members}
        jobs, batch.jobs = list(batch.jobs), deque()
        for j, job in enumerate(jobs):
            if members:
                shares[members[j % len(members)][0]].append((job.prompt, job.output_tokens))
        parts = {i: _Part(self.workers[i], len(share)) for i, share in shares.items() if share}
        self._parts[batch], self._numbers[number] = parts, batch
        batch.in_flight = sum(p.jobs for p in parts.values())
        self.batches.append(batch)
        for worker_id, part in parts.items():
            order = {
                "number": number,
                "engine": batch.lane.name,
                "model": batch.lane.model,
                "simulated": bool(batch.lane.info and batch.lane.info.simulated),
                "phase": batch.phase,
                "workers": len(parts),
                "turn": batch.turn,
                "block": batch.block,
                "jobs": messages.prompt_rows(shares[worker_id]),
                "offsets_s": [o for m, o in zip(members, offsets, strict=True) if m[0] == worker_id],
            }
            self._send(part.worker, messages.BATCH, messages.pack(order))
        deadline = time.monotonic() + READY_S
        for part in list(parts.values()):
            part.ready.wait(max(0.0, deadline - time.monotonic()))
            if not part.ready.is_set():
                self._leave(part.worker, f"worker {part.worker.name} did not get ready in {READY_S:g} s")
        batch.start_mono_ns = time.monotonic_ns()
        for part in parts.values():
            if not part.done:
                self._send(part.worker, messages.BEGIN, {"number": number})
        self._check(batch)

    def end(self, batch: Batch) -> None:
        batch.end_mono_ns = time.monotonic_ns()
        self.batches.remove(batch)
        self.ended.append(batch)
        self._parts.pop(batch, None)
        self._numbers = {n: b for n, b in self._numbers.items() if b is not batch}

    def halt(self) -> None:
        """No new requests, anywhere."""
        for batch in self.batches:
            batch.halted = True
        self._send_all(messages.HALT)

    def cut(self) -> None:
        """End what is in flight."""
        self._send_all(messages.CUT)

    def drain(self, seconds: float) -> bool:
        """Wait until nothing is in flight any more and every record is here; whether that came to be."""
        deadline = time.monotonic() + seconds
        for batch in list(self.batches):
            batch.done.wait(max(0.0, deadline - time.monotonic()))
        return all(b.done.is_set() for b in self.batches)

    # --- a run ---------------------------------------------------------------------------------------------

    def open(self, run: Run) -> None:
        """Tell the workers what is measured, those that are here and those that will come."""
        self._run = run
        for worker_id in list(self._runner.clients):
            self.greet(worker_id)
        self._watcher = gevent.spawn(self._watch)

    def greet(self, worker_id: str) -> None:
        """A worker has connected, or a run begins."""
        if self._run is None:
            return
        name = f"w{self._runner.get_worker_index(worker_id)}"
        worker = self.workers[worker_id] = Worker(worker_id, name)
        self._count_users()
        order = {
            "run": self._run.name,
            "worker": name,
            "version": __version__,
            "settings": self._run.settings.model_dump(mode="json"),
        }
        self._send(worker, messages.RUN, messages.pack(order))

    def close(self) -> None:
        """The run is over: the workers' last seconds are waited for."""
        if self._watcher is not None:
            self._watcher.kill()
        self._send_all(messages.END)
        deadline = time.monotonic() + BYE_S
        for worker in list(self.workers.values()):
            worker.gone.wait(max(0.0, deadline - time.monotonic()))
        self._run = None

    def ask_clocks(self) -> None:
        """Look at the workers' clocks once more. Between turns only: it costs messages."""
        for worker in self.workers.values():
            self._send(worker, messages.CLOCK, {"asked_ns": time.time_ns()})

    def facts(self) -> list[dict[str, Any]]:
        """For the manifest: what is known of each worker."""
        return [worker.facts() for worker in self.workers.values()]

    # --- what workers say ----------------------------------------------------------------------------------

    def heard(self, kind: str, worker_id: str, data: Any) -> None:
        """One message. A worker that this run does not know is not listened to."""
        worker = self.workers.get(worker_id)
        if worker is None:
            return
        if kind == messages.HELLO:
            worker.host, worker.greeted = str(data.get("host", "")), True
            self._send(worker, messages.CLOCK, {"asked_ns": time.time_ns()})
        elif kind == messages.USERS:
            worker.users = int(data["users"])
            self._count_users()
        elif kind == messages.CLOCK:
            worker.clock.add(Sample(int(data["asked_ns"]), int(data["said_ns"]), time.time_ns()))
            if worker.clock.samples < EXCHANGES:
                self._send(worker, messages.CLOCK, {"asked_ns": time.time_ns()})
        elif kind == messages.READY:
            if (part := self._part(worker, data)) is not None:
                part.ready.set()
        elif kind == messages.ROWS:
            self._rows(worker, data)
        elif kind == messages.DONE:
            if (part := self._part(worker, data)) is not None:
                part.done = True
                batch = self._numbers[data["number"]]
                batch.in_flight = max(0, batch.in_flight - int(data.get("unsent", 0)))
                self._check(batch)
        elif kind == messages.BYE:
            worker.gone.set()
        elif kind == messages.PROBLEM:
            self._problem(f"worker {worker.name} on {worker.host or 'an unknown host'}: {data['text']}")

    def _rows(self, worker: Worker, data: Any) -> None:
        for line in _lines(data.get("windows")):
            row = orjson.loads(line)
            worker.events[row["engine"]] = worker.events.get(row["engine"], 0) + int(row.get("tokens", 0))
            self._window_done(line)
        offset_ns = worker.clock.offset_ns
        for line in _lines(data.get("records")):
            record = RequestRecord.from_dict(orjson.loads(line))
            if record.point_ns <= worker.last_point_ns:  # said before
                continue
            worker.last_point_ns = record.point_ns
            worker.records += 1
            record.sent_ns -= offset_ns
            if record.scheduled_ns is not None:
                record.scheduled_ns -= offset_ns
            batch = next((b for b in self.batches if b.lane.name == record.engine), None)
            self._record_done(record)
            if batch is not None:
                batch.finish(record)

    def live_events(self, engine: str) -> int:
        """Raw events that the workers have read of an engine."""
        return sum(w.events.get(engine, 0) for w in self.workers.values())

    # --- workers that go -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while True:
            gevent.sleep(WATCH_S)
            clients = self._runner.clients
            for worker in list(self.workers.values()):
                node = clients.get(worker.id)
                if node is None or node.state in GONE_STATES:
                    self._leave(worker, f"worker {worker.name} on {worker.host} has gone")

    def _leave(self, worker: Worker, why: str) -> None:
        if self.workers.pop(worker.id, None) is None:
            return
        log.warning("%s: what it had delivered counts", why)
        self._count_users()
        self._lost(worker)
        for batch, parts in list(self._parts.items()):
            part = parts.get(worker.id)
            if part is not None and not part.done:
                part.done = True
                part.ready.set()
                batch.halted = True  # its part is missing: the turn is not complete
                self._check(batch)

    def _count_users(self) -> None:
        """All users that have joined, by worker and number there."""
        keys = [(w.id, n) for w in self.workers.values() for n in range(w.users)]
        self.users = {key: n for n, key in enumerate(keys)}

    # --- small things --------------------------------------------------------------------------------------

    def _part(self, worker: Worker, data: Any) -> _Part | None:
        batch = self._numbers.get(data.get("number"))
        return None if batch is None else self._parts.get(batch, {}).get(worker.id)

    def _check(self, batch: Batch) -> None:
        if all(part.done for part in self._parts.get(batch, {}).values()):
            batch.in_flight = 0
            batch.check_done()

    def _send(self, worker: Worker, kind: str, data: Any) -> None:
        self._runner.send_message(kind, data, client_id=worker.id)

    def _send_all(self, kind: str) -> None:
        for worker in self.workers.values():
            self._send(worker, kind, {})


def _lines(data: bytes | None) -> list[bytes]:
    return messages.unpack_lines(data) if data else []
