"""Dispatcher: sends requests when a schedule says so, whatever has become of those before.

It stands where the users of a closed loop stand: a crew with one member, whom the director hands batches like
any other. Locust's users have nothing to do in an open loop. Each request has a greenlet and a client of its
own for as long as it takes.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import time
from collections.abc import Iterable, Sequence
from typing import Any

import gevent
from gevent.event import Event

from loadgen.record import RequestRecord
from loadgen.stream.reader import Reader
from loadgen.users.clientpool import ClientPool
from loadgen.users.crew import Batch, Crew, Job
from loadgen.users.duetimer import DueTimer
from loadgen.users.lane import Lane
from loadgen.users.sending import Workplace, send

log = logging.getLogger("loadgen")

DISPATCHER = "dispatcher"
BEHIND_NS = 100_000_000  # later than this is said at once
OPEN_BEAT_S = 0.01


class Dispatcher(Crew):
    """`locusts` are Locust's users that are there already."""

    def __init__(self, workplace: Workplace, locusts: Iterable[Any] = ()) -> None:
        super().__init__()
        self.users = {DISPATCHER: 0}
        self._workplace = workplace
        self._locusts = set(locusts)
        self._pools: dict[str, ClientPool] = {}
        self._requests: set[gevent.Greenlet] = set()
        self._greenlets: set[gevent.Greenlet] = set()

    def __len__(self) -> int:
        return max(1, len(self._locusts))

    def join(self, user: Any) -> int:
        self._locusts.add(user)
        return len(self._locusts) - 1

    def leave(self, user: Any) -> None:
        self._locusts.discard(user)

    def take(self, user: Any) -> Job:
        """Locust's users wait until they are stopped."""
        while True:
            Event().wait()

    def begin(self, batch: Batch, members: Sequence[Any], offsets_s: Sequence[float]) -> None:
        """Send the batch's jobs from now on, or from `batch.start_mono_ns` on where that is in the future."""
        batch.members = {DISPATCHER: -1.0}
        batch.start_mono_ns = max(batch.start_mono_ns, time.monotonic_ns())
        self.batches.append(batch)
        batch.check_done()
        self._spawn(self._dispatch, batch)
        if batch.scheduled:
            self._spawn(self._open_ahead, batch, [job.due_ns or 0 for job in batch.jobs])

    def cut(self) -> None:
        """End what is in flight; it is recorded as cancelled."""
        self.halt()
        for greenlet in list(self._requests):
            greenlet.kill(block=False)

    def drain(self, seconds: float) -> bool:
        """Wait until nothing is in flight any more; whether that came to be."""
        deadline = time.monotonic() + seconds
        for batch in list(self.batches):
            batch.done.wait(max(0.0, deadline - time.monotonic()))
        return all(b.done.is_set() for b in self.batches)

    def close(self) -> None:
        gevent.killall(list(self._greenlets))
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()

    # --- at work -------------------------------------------------------------------------------------------

    def _dispatch(self, batch: Batch) -> None:
        pool = self._pool(batch.lane)
        timer = DueTimer()
        told = False
        try:
            while batch.jobs:
                job = batch.jobs[0]
                if job.due_ns is not None:
                    due_ns = batch.start_mono_ns + job.due_ns
                    self._expect(due_ns)
                    timer.wait_until(due_ns)
                    if batch.halted:
                        return
                    job.scheduled_mono_ns = due_ns
                    if not told and time.monotonic_ns() - due_ns > BEHIND_NS:
                        told = True
                        log.warning(
                            "behind schedule: a request to %s is sent %.0f ms late; give the generator more "
                            "processor, or more processes",
                            batch.lane.name,
                            (time.monotonic_ns() - due_ns) / 1e6,
                        )
                batch.jobs.popleft()
                if batch.launch():
                    self._launch(job, pool)
        finally:
            self._expect(0)
            timer.close()

    def _expect(self, due_ns: int) -> None:
        """Tell the reader, which has time: it stands back for a moment when a request is due."""
        Reader.get().next_send_ns = due_ns

    def _launch(self, job: Job, pool: ClientPool) -> None:
        def ended(greenlet: gevent.Greenlet) -> None:  # also of one that was killed before it began
            self._requests.discard(greenlet)
            record = greenlet.value
            job.batch.finish(record if isinstance(record, RequestRecord) else None)

        greenlet = gevent.spawn(self._request, job, pool)
        self._requests.add(greenlet)
        greenlet.rawlink(ended)

    def _request(self, job: Job, pool: ClientPool) -> RequestRecord:
        client = pool.take()
        try:
            return send(self._workplace, client, job, 0)[0]
        finally:
            pool.give(client)

    def _open_ahead(self, batch: Batch, due_ns: Sequence[int]) -> None:
        """See that a connection is there for each request when it is due."""
        pool = self._pool(batch.lane)
        seen = 0
        while seen < len(due_ns) and not batch.halted:
            horizon_ns = time.monotonic_ns() + int(pool.lead_s * 1e9) - batch.start_mono_ns
            while seen < len(due_ns) and due_ns[seen] <= horizon_ns:
                seen += 1
            not_sent = len(batch.jobs)
            pool.ensure(min(seen - (len(due_ns) - not_sent), batch.limit - batch.in_flight))
            if seen < len(due_ns):
                gevent.sleep(max(OPEN_BEAT_S, (due_ns[seen] - horizon_ns) / 1e9))

    def _pool(self, lane: Lane) -> ClientPool:
        pool = self._pools.get(lane.name)
        if pool is None:
            pool = self._pools[lane.name] = ClientPool(lambda: self._workplace.make_client(lane))
        return pool

    def _spawn(self, do: Any, *arguments: Any) -> None:
        greenlet = gevent.spawn(do, *arguments)
        self._greenlets.add(greenlet)
        greenlet.rawlink(self._greenlets.discard)
