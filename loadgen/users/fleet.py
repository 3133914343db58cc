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
from typing import Any

import gevent
import orjson

from loadgen import __version__
from loadgen.record import RequestRecord
from loadgen.users import messages
from loadgen.users.clocks import Sample
from loadgen.users.crew import Batch, Crew, Plan
from loadgen.users.peers import GONE_STATES, HELLO_S, Part, Worker
from loadgen.users.run import Run
from loadgen.workload.arrivals import share

log = logging.getLogger("loadgen")

READY_S = 60.0
SETTLE_S = 10.0
WATCH_S = 0.5
BYE_S = 5.0
START_S = 0.05  # from the order to begin until a schedule begins: on its way to all workers
POLL_S = 0.05


class Fleet(Crew):
    """`record_done` is called for each record that arrives, `window_done` with each second's row, `lost` with
    each worker that has gone and why, `problem` with the sentence of a worker that cannot begin."""

    def __init__(
        self,
        runner: Any,
        record_done: Callable[[RequestRecord], None],
        window_done: Callable[[bytes], None],
        lost: Callable[[Worker, str], None],
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
        self._halted = False
        self._parts: dict[Batch, dict[str, Part]] = {}
        self._numbers: dict[Batch, int] = {}
        self._count = 0
        self._watcher: gevent.Greenlet | None = None

    # --- what a crew is asked ------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """About: workers say what has ended, not what they have begun."""
        return sum(len(b.members) if b.source else min(len(b.members), b.in_flight) for b in self.batches)

    def settle(self) -> None:
        """Wait until workers have as many users as Locust wants: it shares them out anew when a worker comes
        or goes, and workers obey between turns."""
        deadline = time.monotonic() + SETTLE_S
        if self._open:  # a dispatcher each
            while any(not w.greeted for w in self.workers.values()) and time.monotonic() < deadline:
                gevent.sleep(POLL_S)
            return
        while len(self) != self._runner.target_user_count and time.monotonic() < deadline:
            gevent.sleep(POLL_S)

    def prepare(self, plan: Plan) -> None:
        """Divide the batches, and wait until every worker has its parts ready."""
        while not self.users and not self._halted:
            gevent.sleep(POLL_S)
        if self._halted:
            return
        deadline = time.monotonic() + READY_S
        parts = [part for line in plan for part in self._divide(*line)]
        for part in parts:
            part.ready.wait(max(0.0, deadline - time.monotonic()))
            if not part.ready.is_set():
                self._leave(part.worker, f"did not get ready in {READY_S:g} s")

    def begin(self, batch: Batch, members: Sequence[Any], offsets_s: Sequence[float]) -> None:
        """Let all workers begin."""
        if batch not in self._parts:
            self.prepare([(batch, members, offsets_s)])
        ahead_ns = int(START_S * 1e9) if batch.scheduled else 0
        batch.start_mono_ns = time.monotonic_ns() + ahead_ns
        start_ns = time.time_ns() + ahead_ns if batch.scheduled else None
        self.batches.append(batch)
        if self._halted:
            self._parts[batch] = {}
            batch.halt()
        for part in self._parts[batch].values():
            if not part.done:
                self._send(
                    part.worker, messages.BEGIN, {"number": self._numbers[batch], "start_ns": start_ns}
                )
        self._check(batch)

    def seal(self, batch: Batch) -> None:
        for part in self._parts.get(batch, {}).values():
            if not part.done:
                self._send(part.worker, messages.CLOSE, {"number": self._numbers[batch]})
        batch.close()
        self._check(batch)

    def share_out(self) -> None:
        """Workers do it among their own users; who has come or gone works, or does not, at once."""
        for batch in self.batches:
            if batch.open:
                batch.members = self._members_of(batch)

    def _members_of(self, batch: Batch) -> dict[Any, float]:
        """About: with several open batches each has its part of every worker's users."""
        open_ones = [b for b in self.batches if b.open]
        k, n = open_ones.index(batch), len(open_ones)
        return {key: -1.0 for key in self.users if key[1] % n == k}

    def end(self, batch: Batch) -> None:
        batch.end_mono_ns = time.monotonic_ns()
        self.batches.remove(batch)
        self.ended.append(batch)
        self._parts.pop(batch, None)
        self._numbers.pop(batch, None)
        for (
            worker
        ) in self.workers.values():  # no more often than this: it costs messages, and clocks drift slowly
            self._ask_clock(worker)

    def halt(self) -> None:
        """No new requests, anywhere."""
        self._halted = True
        for batch in self.batches:
            batch.halted = True
            batch.open = False
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
            if self._runner.clients[worker_id].state not in GONE_STATES:
                self.greet(worker_id)
        self._watcher = gevent.spawn(self._watch)

    def greet(self, worker_id: str) -> None:
        """A worker says that it listens, or a run begins. It is asked for the time before all else: what it
        writes down shall be in the master's."""
        if self._run is None:
            return
        worker = self.workers.get(worker_id)
        if worker is None:
            worker = Worker(worker_id, f"w{self._runner.get_worker_index(worker_id)}")
            self.workers[worker_id] = worker
        if not worker.told:
            self._ask_clock(worker)

    def close(self) -> None:
        """The run is over: the workers' last seconds are waited for. May be called twice."""
        run, self._run = self._run, None
        if run is None:
            return
        if self._watcher is not None:
            self._watcher.kill()
        self._send_all(messages.END)
        deadline = time.monotonic() + BYE_S
        for worker in list(self.workers.values()):
            worker.gone.wait(max(0.0, deadline - time.monotonic()))

    def facts(self) -> list[dict[str, Any]]:
        """For the manifest: what is known of each worker."""
        return [worker.facts() for worker in self.workers.values()]

    def live_events(self, engine: str) -> int:
        """Raw events that the workers have read of an engine."""
        return sum(w.events.get(engine, 0) for w in self.workers.values())

    @property
    def _open(self) -> bool:
        return self._run is not None and self._run.settings.open

    # --- what workers say ----------------------------------------------------------------------------------

    def heard(self, kind: str, worker_id: str, data: Any) -> None:
        """One message. A worker that this run does not know is not listened to."""
        if kind == messages.HERE:
            self.greet(worker_id)
        worker = self.workers.get(worker_id)
        if worker is None:
            return
        if kind == messages.CLOCK:
            self._told_time(worker, data)
        elif kind == messages.HELLO:
            worker.host, worker.greeted = str(data.get("host", "")), True
            if self._open:
                worker.users = 1  # its dispatcher
                self._count_users()
            self._let_in(worker)
        elif kind == messages.USERS:
            if not self._open:
                worker.users = int(data["users"])
                self._count_users()
        elif kind == messages.READY:
            if found := self._part(worker, data):
                found[1].ready.set()
                if found[1].late and found[0].open:
                    self._send(worker, messages.BEGIN, {"number": self._numbers[found[0]]})
        elif kind == messages.ROWS:
            self._rows(worker, data)
        elif kind == messages.DONE:
            if found := self._part(worker, data):
                batch, part = found
                part.done = True
                part.ready.set()
                dropped = int(data.get("dropped", 0))
                batch.in_flight = max(0, batch.in_flight - int(data.get("unsent", 0)) - dropped)
                batch.peak += int(data.get("peak", 0))
                batch.drop(dropped)
                batch.skipped += int(data.get("skipped", 0))
                self._check(batch)
        elif kind == messages.BYE:
            worker.gone.set()
        elif kind == messages.PROBLEM:
            worker.host = worker.host or str(data.get("host", ""))
            if self._count:  # the others are at work, and go on
                self._leave(worker, str(data["text"]))
            else:
                self._problem(f"{worker}: {data['text']}")

    def _told_time(self, worker: Worker, data: Any) -> None:
        sample = Sample(int(data["asked_ns"]), int(data["said_ns"]), time.time_ns())
        if not worker.clock.add(sample):
            self._ask_clock(worker)
        elif not worker.told and self._run is not None:
            worker.told = True
            order = {
                "run": self._run.name,
                "worker": worker.name,
                "version": __version__,
                "clock_offset_ns": worker.clock.offset_ns,
                "settings": self._run.settings.model_dump(mode="json"),
            }
            self._send(worker, messages.RUN, messages.pack(order))

    def _rows(self, worker: Worker, data: Any) -> None:
        for line in messages.unpack_lines(data.get("windows")):
            row = orjson.loads(line)
            worker.events[row["engine"]] = worker.events.get(row["engine"], 0) + int(row.get("tokens", 0))
            self._window_done(line)
        for line in messages.unpack_lines(data.get("records")):
            record = RequestRecord.from_dict(orjson.loads(line))
            if record.point_ns <= worker.last_point_ns:  # said before
                continue
            worker.last_point_ns = record.point_ns
            worker.records += 1
            batch = next((b for b in self.batches if b.lane.name == record.engine), None)
            self._record_done(record)
            if batch is not None:
                if batch.source is not None:  # only the worker knew of it
                    batch.total += 1
                    batch.in_flight += 1
                batch.finish(record)

    # --- workers that go -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        while True:
            gevent.sleep(WATCH_S)
            clients = self._runner.clients
            for worker in list(self.workers.values()):
                node = clients.get(worker.id)
                if node is None or node.state in GONE_STATES:
                    self._leave(worker, "it has gone")
                elif not worker.greeted and time.monotonic() - worker.since_s > HELLO_S:
                    self._leave(worker, "it does not answer: is it loadgen, of this version?")

    def _leave(self, worker: Worker, why: str) -> None:
        """Go on without it. If it lives (it was held up, say), it has to go: its requests would be in
        somebody else's turn."""
        if self.workers.pop(worker.id, None) is None:
            return
        if worker.id in self._runner.clients:
            self._runner.send_message("quit", client_id=worker.id)
        self._count_users()
        for batch, parts in list(self._parts.items()):
            part = parts.get(worker.id)
            if part is not None and not part.done:
                part.done = True
                part.ready.set()
                batch.halted = True  # its part is missing: the turn is not complete
                self._check(batch)
        self._lost(worker, why)

    def _count_users(self) -> None:
        """All users that have joined, by worker and number there."""
        keys = [(w.id, n) for w in self.workers.values() for n in range(w.users)]
        self.users = {key: n for n, key in enumerate(keys)}
        self.share_out()

    # --- small things --------------------------------------------------------------------------------------

    def _divide(self, batch: Batch, members: Sequence[Any], offsets_s: Sequence[float]) -> list[Part]:
        """Send each worker its part of one batch."""
        here = [(m, o) for m, o in zip(members, offsets_s, strict=True) if m in self.users]
        here = here or [(m, 0.0) for m in self.users]
        batch.members = {m: -1.0 for m, _ in here}
        number = self._numbers[batch] = self._count = self._count + 1
        if batch.source is not None:
            return self._divide_open(batch, here)
        shares: dict[str, list[Any]] = {}
        jobs, batch.jobs = list(batch.jobs), deque()
        for j, job in enumerate(jobs):
            (worker_id, _), _ = here[j % len(here)]
            shares.setdefault(worker_id, []).append(job)
        parts = self._parts[batch] = {i: Part(self.workers[i], len(share)) for i, share in shares.items()}
        batch.in_flight = batch.total
        for index, (worker_id, part) in enumerate(parts.items()):
            order = {
                **self._order(batch, part, number, len(parts)),
                "limit": max(1, share(batch.limit, index, len(parts))),
                "jobs": messages.prompt_rows((job.prompt, job.output_tokens) for job in shares[worker_id]),
                "due_s": [None if job.due_ns is None else job.due_ns / 1e9 for job in shares[worker_id]],
                "members": [(m[1], o) for m, o in here if m[0] == worker_id],
            }
            self._send(part.worker, messages.BATCH, messages.pack(order))
        return list(parts.values())

    def _divide_open(self, batch: Batch, here: Sequence[tuple[Any, float]]) -> list[Part]:
        """Every worker gets all prompts of an open batch, and takes each n-th of them; one without users may
        have some later."""
        workers = [w for w in self.workers.values() if w.greeted]
        parts = self._parts[batch] = {w.id: Part(w, 0) for w in workers}
        batch.in_flight = 1  # it is not done before all workers say so
        for n, part in enumerate(parts.values()):
            self._send_open(batch, part, [m[1] for m, _ in here if m[0] == part.worker.id], n, len(parts))
        return list(parts.values())

    def _send_open(self, batch: Batch, part: Part, members: list[int], start: int, step: int) -> None:
        assert batch.source is not None
        share = batch.source.share(start, step, part.worker.name)
        order = {
            **self._order(batch, part, self._numbers[batch], step),
            "jobs": messages.prompt_rows((p, batch.output_tokens_each) for p in share.pool),
            "members": [(n, 0.0) for n in members],
            "endless": [share.key, share.first_pair, start, step, batch.output_tokens_each],
        }
        self._send(part.worker, messages.BATCH, messages.pack(order))

    def _let_in(self, worker: Worker) -> None:
        """A worker that comes while a batch is open takes part in it, with prompts of its own."""
        for batch in self.batches:
            parts = self._parts.get(batch)
            if batch.open and parts is not None and worker.id not in parts:
                parts[worker.id] = Part(worker, 0, late=True)
                self._send_open(batch, parts[worker.id], [], len(parts) - 1, len(parts))

    def _order(self, batch: Batch, part: Part, number: int, workers: int) -> dict[str, Any]:
        """What every batch says of itself."""
        return {
            "number": number,
            "clock_offset_ns": part.worker.clock.offset_ns,
            "engine": batch.lane.name,
            "model": batch.lane.model,
            "simulated": bool(batch.lane.info and batch.lane.info.simulated),
            "phase": batch.phase,
            "workers": workers,
            "turn": batch.turn,
            "block": batch.block,
        }

    def _part(self, worker: Worker, data: Any) -> tuple[Batch, Part] | None:
        for batch, number in self._numbers.items():
            part = self._parts[batch].get(worker.id)
            if number == data.get("number") and part is not None:
                return batch, part
        return None

    def _check(self, batch: Batch) -> None:
        if batch in self.batches and all(part.done for part in self._parts[batch].values()):
            batch.in_flight = 0
            batch.check_done()

    def _ask_clock(self, worker: Worker) -> None:
        self._send(worker, messages.CLOCK, {"asked_ns": time.time_ns()})

    def _send(self, worker: Worker, kind: str, data: Any) -> None:
        self._runner.send_message(kind, data, client_id=worker.id)

    def _send_all(self, kind: str) -> None:
        for worker in list(self.workers.values()):
            self._send(worker, kind, {})
