"""LlmUser: the Locust user whose client is a streaming LLM client."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust import User, constant, task
from locust.user.task import LOCUST_STATE_RUNNING, LOCUST_STATE_WAITING

from typing import Any, ClassVar

import gevent
from gevent import GreenletExit

from loadgen.record import FAILED, RequestRecord
from loadgen.users.crew import Job
from loadgen.users.lane import Lane
from loadgen.users.sending import Client, Workplace, send
from loadgen.workload.conversation import think_time
from loadgen.workload.scenarios import Scenario

HOST_HINT = "(see Engine)"  # what Locust shows for a host: without one, its web form asks for it


class LlmUser(User):
    """Sends what the director hands out, one request after the other.

    A subclass names its `scenario`, the defaults of its workload. `number` counts the users of a test from
    0. Request events have the type CHAT or COMPLETION, the name "ENGINE SCENARIO", with the traffic class
    where there are some, and the full-precision e2e time. Warm-up requests fire none, so Locust's statistics
    hold measured requests only; nor does a request that was cut off when its user was stopped, which is
    neither a success nor a failure.
    """

    abstract = True
    host = HOST_HINT
    scenario: ClassVar[Scenario]
    wait_time = constant(0)
    workplace: ClassVar[Workplace]

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.number = -1
        self._clients: dict[str, Client] = {}

    def on_start(self) -> None:
        self.number = self.workplace.crew.join(self)

    def on_stop(self) -> None:
        self.workplace.crew.leave(self)
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    @task
    def request(self) -> None:
        """One request, or one conversation: Locust calls this again and again."""
        # While it waits for work a user may be stopped at once, as in Locust's own wait(); while it has
        # work, a stop lets it finish.
        self._state = LOCUST_STATE_WAITING
        job: Job | None = self.workplace.crew.take(self)
        while job is not None:
            self._state = LOCUST_STATE_RUNNING
            batch, record, following = job.batch, None, None
            try:
                record, answer = send(self.workplace, self._client(job.batch.lane), job, self.number)
                following = batch.follow(job, answer)
            finally:
                batch.finish(record)
            job = following if following is None or self._think(following) else None

    def _think(self, job: Job) -> bool:
        """Before the next question; whether it is to be asked."""
        run = self.workplace.run
        assert run is not None
        self._state = LOCUST_STATE_WAITING
        try:
            if run.settings.think_s:
                gevent.sleep(think_time(run.settings.think_s, run.settings.seed, job.prompt.pair))
        except GreenletExit:
            job.batch.break_off()
            raise
        return job.batch.begin(job)

    def _client(self, lane: Lane) -> Client:
        client = self._clients.get(lane.name)
        if client is None:
            client = self._clients[lane.name] = self.workplace.make_client(lane)
        return client


def fire_request(environment: Any, record: RequestRecord, api: str, *, simulated: bool = False) -> None:
    """Tell Locust of one finished request, for its statistics, web UI, --csv and exit code. A simulated
    engine is called so in all of them."""
    failed = record.outcome == FAILED
    error = None
    if failed:
        said = f": {record.error_text}" if record.error_text else ""
        error = RequestFailed(f"{record.error}{said}"[:300])
    mark = "(simulated)" if simulated else ""
    time_ms = record.e2e_ms
    if failed or time_ms is None:
        time_ms = record.complete_ms if record.complete_ms is not None else record.e2e_ms
    environment.events.request.fire(
        request_type="CHAT" if api == "chat" else "COMPLETION",
        name=" ".join(filter(None, (record.engine, record.scenario, record.traffic_class, mark))),
        response_time=time_ms,
        response_length=record.response_bytes,
        exception=error,
        context={},
        record=record,
    )


class RequestFailed(Exception):
    """A failed request, as Locust's statistics name it: the kind of error and what was said."""
