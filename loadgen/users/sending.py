"""One request: a job is sent through a client, and its record handed on. Users do it, and dispatchers."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
from typing import Any, Protocol

from gevent import GreenletExit

from loadgen.record import CANCELLED, OK, RequestRecord
from loadgen.stream import clock
from loadgen.users.crew import Crew, Job
from loadgen.users.lane import Lane
from loadgen.users.run import Run

log = logging.getLogger("loadgen")


class Exchange(Protocol):
    """One request and what came back."""

    @property
    def text(self) -> str: ...

    def fill(self, record: RequestRecord, http_error_text: Any = None) -> None: ...


class Client(Protocol):
    """What a user needs of the streaming client."""

    def send(
        self,
        path: str,
        body: bytes,
        *,
        keep_text: bool = False,
        scheduled_mono_ns: int | None = None,
        asked_output_tokens: int | None = None,
    ) -> Exchange: ...

    @property
    def ready(self) -> bool: ...

    def open(self) -> None: ...

    def cancelled_exchange(self) -> Exchange | None: ...

    def close(self) -> None: ...


class Workplace(Protocol):
    """Where a user works: the run that goes on, its crew, and what is done with each record."""

    crew: Crew
    run: Run | None

    def make_client(self, lane: Lane) -> Client: ...

    def record_done(self, record: RequestRecord) -> None: ...


def send(workplace: Workplace, client: Client, job: Job, user: int) -> tuple[RequestRecord, str | None]:
    """The record, and the answer where a conversation goes on from it. The GreenletExit of one who is stopped
    is raised again, when what there is has been recorded as cancelled."""
    lane = job.batch.lane
    record = _new_record(workplace, job, user)
    exchange: Exchange | None
    try:
        exchange = client.send(
            lane.engine.path,
            job.body,
            keep_text=bool(job.prompt.follow_ups),
            scheduled_mono_ns=job.scheduled_mono_ns,
            asked_output_tokens=job.output_tokens,
        )
    except GreenletExit:
        exchange = client.cancelled_exchange()
        if exchange is not None:
            try:
                exchange.fill(record, lane.engine.http_error_text)
                record.outcome = CANCELLED
                _done(workplace, job, record)
            except Exception:  # a user who is told to go goes, whatever else is wrong
                log.exception("a cancelled request could not be recorded")
        raise
    exchange.fill(record, lane.engine.http_error_text)
    _done(workplace, job, record)
    return record, exchange.text if record.outcome == OK and job.prompt.follow_ups else None


def _done(workplace: Workplace, job: Job, record: RequestRecord) -> None:
    record.phase = job.batch.record_phase
    if job.due_ns is not None and job.scheduled_mono_ns is not None:
        if record.send_lag_ms is not None:
            record.scheduled_ns = record.sent_ns - round(record.send_lag_ms * 1e6)
        else:  # never sent
            record.scheduled_ns = job.scheduled_mono_ns + clock.wall_offset_ns()
    workplace.record_done(record)


def _new_record(workplace: Workplace, job: Job, user: int) -> RequestRecord:
    run = workplace.run
    assert run is not None
    return RequestRecord(
        run=run.name,
        scenario=run.settings.scenario,
        engine=job.batch.lane.name,
        model=job.batch.lane.model or "",
        user=user,
        sequence=run.next_sequence(),
        turn=job.batch.turn,
        block=job.batch.block,
        pair=job.prompt.pair,
        traffic_class=job.prompt.traffic_class,
        asked_output_tokens=job.output_tokens,
    )
