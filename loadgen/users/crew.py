"""Crew: the users of a test, and the work that is handed to them.

Locust owns the users: it starts and stops them whenever a person says so. The director owns the work: a
batch of jobs for one engine, which its members pull from one queue. The crew stands between them, so that
users who come or go never break a turn.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gevent
from gevent.event import Event

from loadgen.metrics.send_lag import LATE_MS
from loadgen.record import DRAIN, MEASURE, RequestRecord
from loadgen.users.lane import Lane
from loadgen.workload.conversation import next_prompt
from loadgen.workload.endless import Endless
from loadgen.workload.prompt import Prompt

_KEPT = 1000  # times of the latest requests: progress takes their median while streams are being read


@dataclass(eq=False, slots=True)
class Job:
    """One request to be sent: its body is made before the turn begins, so that a burst is one. `due_ns` after
    the batch's start it is to be sent, in an open loop."""

    batch: Batch
    prompt: Prompt
    body: bytes
    output_tokens: int
    due_ns: int | None = None
    scheduled_mono_ns: int | None = None


class Batch:
    """One engine's jobs of one turn, or of its warm-up, and how far they are.

    `members` are the users who pull from it, with the seconds after the start at which each begins (-1: has
    begun); `done` is set when no job is left and none in flight. `last_end_ns` is the wall time at which the
    last response ended. A conversation is one job and several requests: `total` counts them all, `thinking`
    the users who are about to ask further, `skipped` what could not be asked since there was no answer to go
    on from. In an open loop jobs are `scheduled`: `late` counts those that were sent late (of those that have
    ended), `dropped` those that were not sent since `limit` were in flight, `peak` is the most there were.
    `ttfts_ms` and `e2es_ms` are of the latest requests, for progress and warm-up.

    With a `source` it has no fixed jobs: while it is `open`, whoever is there sends one request after the
    other, each made when it is due, and `total` is what has been sent. Nobody is owed the rest of a
    conversation that is going on when it is closed.
    """

    def __init__(self, lane: Lane, phase: str, turn: int, block: int, source: Endless | None = None) -> None:
        self.lane = lane
        self.phase = phase
        self.turn = turn
        self.block = block
        self.jobs: deque[Job] = deque()
        self.members: dict[Any, float] = {}
        self.total = 0
        self.thinking = 0
        self.skipped = 0
        self.scheduled = False
        self.limit = 1_000_000
        self.late = 0
        self.dropped = 0
        self.peak = 0
        self.in_flight = 0
        self.finished = 0
        self.failed = 0
        self.output_tokens = 0
        self.ttfts_ms: deque[float] = deque(maxlen=_KEPT)
        self.e2es_ms: deque[float] = deque(maxlen=_KEPT)
        self.halted = False
        self.start_mono_ns = 0
        self.end_mono_ns: int | None = None
        self.workers = 1  # processes that have a part of it
        self.last_end_ns = 0
        self.done = Event()
        self.source = source
        self.open = source is not None
        self.output_tokens_each = 0
        self._stream: Iterator[Prompt] = iter(source or ())

    def add(self, prompt: Prompt, output_tokens: int, due_s: float | None = None) -> None:
        """`due_s`: seconds after the start, in an open loop; jobs are added in order."""
        job = self._job(prompt, prompt.output_tokens or output_tokens)
        if due_s is not None:
            job.due_ns = round(due_s * 1e9)
            self.scheduled = True
        self.jobs.append(job)
        self.total += 1 + len(prompt.follow_ups)

    def _job(self, prompt: Prompt, tokens: int) -> Job:
        body = self.lane.engine.request_body(prompt, self.lane.model, output_tokens=tokens)
        return Job(self, prompt, body, tokens)

    def follow(self, job: Job, answer: str | None) -> Job | None:
        """The next request of a conversation, to be sent by the same user: `begin` it, or `break_off`. None
        at its end, or where there was no answer. Before `finish`: the batch is not done in between."""
        rest = job.prompt.follow_ups
        if not rest or self.halted:
            return None
        if self.source is not None and not (answer and self.open):
            return None
        if not answer:
            self.skipped += len(rest)
            return None
        self.thinking += 1
        return self._job(next_prompt(job.prompt, answer), job.output_tokens)

    def begin(self, job: Job) -> bool:
        """The user has thought; whether the job may still be sent."""
        self.thinking -= 1
        if self.halted or (self.source is not None and not self.open):
            self.check_done()
            return False
        self.in_flight += 1
        self.total += self.source is not None
        return True

    def break_off(self) -> None:
        """A user has gone while it thought: the rest of its conversation is missing from the turn."""
        self.thinking -= 1
        self.check_done()

    def claim(self, user: Any) -> Job | float | None:
        """The user's next job; seconds to wait for it; None if there is none for it here."""
        if not (self.jobs or self.open) or user not in self.members:
            return None
        due_mono_ns = self.start_mono_ns + int(self.members[user] * 1e9)
        if self.members[user] >= 0:
            wait_s = (due_mono_ns - time.monotonic_ns()) / 1e9
            if wait_s > 0:
                return wait_s
        job = self._made_now() if self.open else self.jobs.popleft()
        if self.members[user] >= 0:  # its first of this batch: the only one with an appointed time
            self.members[user] = -1.0
            job.scheduled_mono_ns = due_mono_ns
        self.in_flight += 1
        return job

    def _made_now(self) -> Job:
        prompt = next(self._stream)
        self.total += 1
        return self._job(prompt, prompt.output_tokens or self.output_tokens_each)

    def launch(self) -> bool:
        """A job of an open loop is due; whether it may be sent."""
        if self.in_flight >= self.limit:
            self.drop(1)
            return False
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        return True

    def drop(self, jobs: int) -> None:
        self.dropped += jobs
        self.finished += jobs
        self.check_done()

    def finish(self, record: RequestRecord | None) -> None:
        """A claimed job has ended; None if it was never sent."""
        self.in_flight -= 1
        self.finished += 1
        if record is not None:
            ended_ms = record.complete_ms if record.complete_ms is not None else record.e2e_ms or 0.0
            self.last_end_ns = max(self.last_end_ns, record.sent_ns + int(ended_ms * 1e6))
            self.failed += record.outcome == "failed"
            self.late += self.scheduled and (record.send_lag_ms or 0.0) > LATE_MS
            self.output_tokens += record.output_tokens or 0
            if record.outcome == "ok" and record.ttft_ms is not None and record.e2e_ms is not None:
                self.ttfts_ms.append(record.ttft_ms)
                self.e2es_ms.append(record.e2e_ms)
        self.check_done()

    def halt(self) -> None:
        """Send nothing more; what is in flight may finish."""
        self.halted = True
        self.jobs.clear()
        self.close()

    def close(self) -> None:
        """An open batch has been open for long enough: what is in flight may finish, and belongs to it."""
        self.open = False
        self.check_done()

    def check_done(self) -> None:
        if not self.jobs and not self.open and not self.in_flight and not self.thinking:
            self.done.set()

    @property
    def complete(self) -> bool:
        return not self.halted and self.finished + self.skipped == self.total

    @property
    def record_phase(self) -> str:
        """The phase of a record that ends now."""
        return DRAIN if self.halted and self.phase == MEASURE else self.phase


Plan = Sequence[tuple[Batch, Sequence[Any], Sequence[float]]]
"""What is to be done: batches, each with its members and the seconds after its start at which each begins."""


class Crew:
    def __init__(self) -> None:
        self.users: dict[Any, int] = {}
        self.batches: list[Batch] = []
        self.ended: deque[Batch] = deque(maxlen=_KEPT)  # for the windows, which take them out
        self._joined = 0
        self._bell = Event()

    def __len__(self) -> int:
        return len(self.users)

    @property
    def in_flight(self) -> int:
        return sum(b.in_flight for b in self.batches)

    def join(self, user: Any) -> int:
        """A user has come; its number. It gets work from the next batch on, or at once where a batch is open
        or has nobody left to do it."""
        number = self.users[user] = self._joined
        self._joined += 1
        for batch in self.batches:
            if not batch.members and not batch.open:
                batch.members[user] = -1.0
        self.share_out()
        return number

    def leave(self, user: Any) -> None:
        self.users.pop(user, None)
        for batch in self.batches:
            if batch.members.pop(user, None) is not None and not batch.members and not batch.open:
                batch.members.update(dict.fromkeys(self.users, -1.0))
                self._ring()
        self.share_out()

    def share_out(self) -> None:
        """Every user works for one of the open batches, and each of them has as many as the others (to one).
        Who changes finishes what is in flight first."""
        open_ones = [batch for batch in self.batches if batch.open]
        if not open_ones:
            return
        busy = {user for batch in open_ones for user in batch.members}
        for user in self.users:
            if user not in busy:
                min(open_ones, key=lambda b: len(b.members)).members[user] = -1.0
        while True:
            least, most = (f(open_ones, key=lambda b: len(b.members)) for f in (min, max))
            if len(most.members) - len(least.members) < 2:
                break
            user, _ = most.members.popitem()
            least.members[user] = -1.0
        self._ring()

    def cut(self) -> None:
        """End what is in flight. Here Locust does, by ending users."""

    def drain(self, seconds: float) -> bool:
        """Wait until nothing is in flight any more; whether that came to be. Here Locust waits for users."""
        return True

    def close(self) -> None:
        """The run is over."""

    def settle(self) -> None:
        """Before a turn: wait until there are as many users as there shall be. Here they come at once."""

    def prepare(self, plan: Plan) -> None:
        """Before a turn: whatever takes time. Here all is there."""

    def begin(self, batch: Batch, members: Sequence[Any], offsets_s: Sequence[float]) -> None:
        """Hand out a batch's jobs from now on, to those of `members` who are still here; to whoever is here
        if none of them is."""
        plan = zip(members, offsets_s, strict=True)
        batch.members = {user: offset for user, offset in plan if user in self.users}
        if not batch.members and not batch.open:
            batch.members = dict.fromkeys(self.users, -1.0)
        batch.start_mono_ns = time.monotonic_ns()
        self.batches.append(batch)
        batch.check_done()
        self._ring()

    def seal(self, batch: Batch) -> None:
        """Hand out no more of an open batch's jobs."""
        batch.close()

    def end(self, batch: Batch) -> None:
        batch.end_mono_ns = time.monotonic_ns()
        self.batches.remove(batch)
        self.ended.append(batch)

    def halt(self) -> None:
        """No new requests."""
        for batch in self.batches:
            batch.halt()

    def take(self, user: Any) -> Job:
        """Wait for the user's next job."""
        while True:
            bell = self._bell
            wait_s: float | None = None
            for batch in self.batches:
                job = batch.claim(user)
                if isinstance(job, Job):
                    return job
                if job is not None:
                    wait_s = job if wait_s is None else min(wait_s, job)
            if wait_s is None:
                bell.wait()
            else:
                gevent.sleep(wait_s)

    def _ring(self) -> None:
        bell, self._bell = self._bell, Event()
        bell.set()
