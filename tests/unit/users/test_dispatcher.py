from __future__ import annotations

import locust  # noqa: F401

import time
from typing import Any

import gevent
import pytest

from loadgen.record import CANCELLED, DRAIN, MEASURE, WARMUP
from loadgen.users.clientpool import ClientPool
from loadgen.users.crew import Batch
from loadgen.users.dispatcher import DISPATCHER, Dispatcher
from loadgen.users.duetimer import DueTimer
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane
from tests.unit.users.test_user import FakeExchange, Place


class Client:
    """A server that answers when the place says so, and closes its connections if it is told to."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.alive = self.closed = False
        self.current: Any = None
        self.opened = 0

    @property
    def ready(self) -> bool:
        return self.alive

    def open(self) -> None:
        gevent.sleep(self.place.connect_s)
        self.alive = self.place.server
        self.opened += 1

    def send(self, path: str, body: bytes, *, scheduled_mono_ns: int | None = None, **_: Any) -> FakeExchange:
        self.place.sent += 1
        self.place.log.append((body, scheduled_mono_ns, time.monotonic_ns(), self.alive))
        self.current = FakeExchange()
        lag_ms = 0.0 if scheduled_mono_ns is None else (time.monotonic_ns() - scheduled_mono_ns) / 1e6
        try:
            self.place.answer.wait()
        except BaseException:
            self.current.cancelled = True
            raise
        fill = self.current.fill

        def filled(record: Any, text: Any = None) -> None:
            fill(record, text)
            record.sent_ns, record.send_lag_ms, record.complete_ms = time.time_ns(), lag_ms, 1.0

        self.current.fill = filled
        self.alive = self.place.keeps
        return self.current

    def cancelled_exchange(self) -> Any:
        return self.current if self.current and self.current.cancelled else None

    def close(self) -> None:
        self.alive, self.closed = False, True


class Street(Place):
    connect_s = 0.0
    server = keeps = True

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        self.dispatcher = Dispatcher(self)

    def make_client(self, lane: Any) -> Client:
        self.clients.append(Client(self))
        return self.clients[-1]


def batch(due_s: list[float | None], limit: int = 1000, phase: str = MEASURE) -> Batch:
    made = Batch(lane(), phase, 0, 0)
    made.limit = limit
    for i, at in enumerate(due_s):
        made.add(Prompt(i, "x"), 8, at)
    return made


def begin(street: Street, one: Batch) -> None:
    street.dispatcher.begin(one, [DISPATCHER], [0.0])


@pytest.fixture
def street() -> Any:
    made = Street()
    yield made
    made.answer.set()
    made.dispatcher.close()


def test_requests_are_sent_when_due_though_none_is_answered(street: Street) -> None:
    one = batch([0.0, 0.03, 0.03, 0.08])
    begin(street, one)
    while street.sent < 4:
        gevent.sleep(0.005)
    assert one.in_flight == one.peak == 4
    assert [scheduled - one.start_mono_ns for _, scheduled, _, _ in street.log] == [0, 30e6, 30e6, 80e6]
    assert all(sent >= scheduled for _, scheduled, sent, _ in street.log)
    assert not one.done.is_set()
    street.answer.set()
    assert one.done.wait(5)
    street.dispatcher.end(one)
    assert one.complete
    assert [r.pair for r in street.records] == [0, 1, 2, 3]
    assert {r.user for r in street.records} == {0}
    for r in street.records:
        assert r.scheduled_ns == r.sent_ns - round(r.send_lag_ms * 1e6)


def test_warm_up_has_no_schedule(street: Street) -> None:
    one = batch([None, None], phase=WARMUP)
    street.answer.set()
    begin(street, one)
    assert one.done.wait(5)
    assert [r.scheduled_ns for r in street.records] == [None, None]


def test_beyond_the_limit_requests_are_dropped_and_the_turn_ends(street: Street) -> None:
    one = batch([0.0, 0.0, 0.01, 0.02], limit=2)
    begin(street, one)
    while one.jobs:
        gevent.sleep(0.005)
    assert (one.dropped, one.peak, street.sent) == (2, 2, 2)
    street.answer.set()
    assert one.done.wait(5)
    assert one.complete
    assert one.finished == 4


def test_a_halt_sends_nothing_more_and_lets_answers_come(street: Street) -> None:
    one = batch([0.0, 30.0])
    begin(street, one)
    while not street.sent:
        gevent.sleep(0.005)
    street.dispatcher.halt()
    assert not street.dispatcher.drain(0.01)
    street.answer.set()
    assert street.dispatcher.drain(5)
    assert [(r.outcome, r.phase) for r in street.records] == [("ok", DRAIN)]
    assert not one.complete


def test_a_cut_records_what_was_in_flight_as_cancelled(street: Street) -> None:
    one = batch([0.0, 0.0, 30.0])
    begin(street, one)
    while street.sent < 2:
        gevent.sleep(0.005)
    street.dispatcher.cut()
    assert street.dispatcher.drain(5)
    assert [r.outcome for r in street.records] == [CANCELLED, CANCELLED]


def test_one_that_is_cut_before_it_has_begun_holds_up_nobody(street: Street) -> None:
    one = batch([None], phase=WARMUP)
    begin(street, one)
    gevent.sleep(0)  # the dispatcher has spawned it; it has not run
    street.dispatcher.cut()
    assert street.dispatcher.drain(5)


def test_connections_are_open_when_a_request_is_due(street: Street) -> None:
    street.connect_s = 0.01
    street.keeps = False  # as llama-server does: every request needs a new one
    street.answer.set()
    one = batch([1.0 + 0.05 * k for k in range(6)])
    street.dispatcher._pool(one.lane).lead_s = 10.0  # however busy this machine is
    begin(street, one)
    assert one.done.wait(10)
    assert [alive for *_, alive in street.log] == [True] * 6
    assert len(street.clients) == 6


def test_connections_are_not_opened_long_before(street: Street) -> None:
    one = batch([600.0])  # an idle connection costs some servers a thread
    begin(street, one)
    gevent.sleep(0.05)
    assert street.clients == []
    street.dispatcher.halt()


def test_a_kept_connection_is_used_again(street: Street) -> None:
    street.answer.set()
    for _ in range(3):
        one = batch([0.05])
        begin(street, one)
        assert one.done.wait(10)
        street.dispatcher.end(one)
    assert [alive for *_, alive in street.log][1:] == [True, True]
    assert len({id(c) for c in street.clients if not c.closed}) == 1
    street.dispatcher.close()
    assert all(c.closed for c in street.clients)


def test_a_server_that_is_not_there_is_for_the_request_to_tell(street: Street) -> None:
    street.server = street.keeps = False
    street.answer.set()
    one = batch([0.05, 0.06])
    begin(street, one)
    assert one.done.wait(10)
    assert street.sent == 2


def test_the_pool_gives_no_dead_connection(street: Street) -> None:
    pool = ClientPool(lambda: street.make_client(None))
    dead, alive = pool.take(), pool.take()
    dead.open()
    alive.open()
    pool.give(alive)
    pool.give(dead)
    street.clients[0].alive = False
    assert pool.take() is alive
    assert street.clients[0].closed
    pool.close()
    pool.give(alive)  # a request that ends after the run
    assert street.clients[1].closed


def test_it_opens_earlier_where_connecting_takes_long(street: Street) -> None:
    street.connect_s = 0.1
    pool = ClientPool(lambda: street.make_client(None))
    before = pool.lead_s
    pool.ensure(2)
    pool.ensure(2)  # they are on their way
    while len(street.clients) < 2 or not all(c.ready for c in street.clients):
        gevent.sleep(0.01)
    assert len(street.clients) == 2
    assert before < 0.3 <= pool.lead_s <= 1.0
    pool.close()


def test_locusts_users_have_nothing_to_do(street: Street) -> None:
    assert len(street.dispatcher) == 1
    user = object()
    street.dispatcher.join(user)
    street.dispatcher.join(object())
    assert len(street.dispatcher) == 2
    waiting = gevent.spawn(street.dispatcher.take, user)
    waiting.join(0.02)
    assert not waiting.ready()
    waiting.kill()
    street.dispatcher.leave(user)
    assert len(street.dispatcher) == 1
    assert list(street.dispatcher.users) == [DISPATCHER]


@pytest.mark.parametrize("exact", [True, False])
def test_the_timer_never_wakes_early_and_not_for_what_is_past(exact: bool) -> None:
    timer = DueTimer(exact=exact)
    try:
        for _ in range(20):
            due = time.monotonic_ns() + 3_000_000
            timer.wait_until(due)
            assert time.monotonic_ns() >= due or not exact
        before = time.monotonic_ns()
        timer.wait_until(before - 5)
        timer.wait_until(0)
        assert time.monotonic_ns() - before < 1e9
    finally:
        timer.close()
        timer.close()


def test_the_timer_lets_others_run_and_can_be_killed() -> None:
    timer = DueTimer()
    waiting = gevent.spawn(timer.wait_until, time.monotonic_ns() + 60_000_000_000)
    gevent.sleep(0.01)
    waiting.kill()
    timer.wait_until(time.monotonic_ns() + 1_000_000)  # set anew, it is right
    timer.close()
