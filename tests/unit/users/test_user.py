import locust
from locust.env import Environment
from locust.user.task import LOCUST_STATE_WAITING

import gevent
import pytest

from loadgen.record import CANCELLED, MEASURE, RequestRecord
from loadgen.users.crew import Batch, Crew
from loadgen.users.user import LlmUser, fire_request
from loadgen.workload.prompt import Prompt
from loadgen.workload.scenarios import CONCURRENCY
from tests.unit.users.fakes import lane, record


class FakeExchange:
    def __init__(self, cancelled=False):
        self.cancelled = cancelled

    def fill(self, record, http_error_text=None):
        record.outcome = CANCELLED if self.cancelled else "ok"
        record.e2e_ms = 12.345678


class FakeClient:
    """A server that answers when `answer` is set."""

    def __init__(self, place):
        self.place = place
        self.current = None
        self.closed = False

    def send(self, path, body, *, keep_text=False, scheduled_mono_ns=None, asked_output_tokens=None):
        self.current = FakeExchange()
        self.place.sent += 1
        try:
            self.place.answer.wait()
        except BaseException:
            self.current.cancelled = True
            raise
        return self.current

    def cancelled_exchange(self):
        return self.current if self.current and self.current.cancelled else None

    def close(self):
        self.closed = True


class Place:
    class run:
        name = "r"
        settings = type("S", (), {"scenario": "concurrency"})
        sequence = 0

        @classmethod
        def next_sequence(cls):
            cls.sequence += 1
            return cls.sequence

    def __init__(self):
        self.crew = Crew()
        self.answer = gevent.event.Event()
        self.records = []
        self.clients = []
        self.sent = 0

    def make_client(self, lane):
        self.clients.append(FakeClient(self))
        return self.clients[-1]

    def record_done(self, record):
        self.records.append(record)


@pytest.fixture
def test():
    class Fake(LlmUser):
        scenario = CONCURRENCY

    place = Fake.workplace = Place()
    environment = Environment(user_classes=[Fake], stop_timeout=30)
    runner = environment.create_local_runner()
    place.environment, place.runner = environment, runner
    runner.start(2, 100)
    runner.spawning_greenlet.join()
    gevent.idle()
    yield place
    place.answer.set()
    runner.quit()


def begin(place, jobs=4):
    batch = Batch(lane(), MEASURE, 3, 1)
    for i in range(jobs):
        batch.add(Prompt(i, "x"), 8)
    place.crew.begin(batch, list(place.crew.users), [0.0] * len(place.crew))
    gevent.idle()
    return batch


def test_users_work_off_a_batch_and_record_it(test):
    batch = begin(test)
    assert test.sent == 2
    test.answer.set()
    assert batch.done.wait(5)
    assert sorted(r.pair for r in test.records) == [0, 1, 2, 3]
    first = test.records[0]
    assert (first.engine, first.model, first.turn, first.block, first.phase) == ("a", "m", 3, 1, "measure")
    assert {r.user for r in test.records} == {0, 1}
    assert sorted(r.sequence for r in test.records) == sorted({r.sequence for r in test.records})
    assert len(test.clients) == 2, "one client a user, kept"


def test_users_who_wait_for_work_are_stopped_at_once(test):
    assert {u._state for u in test.crew.users} == {LOCUST_STATE_WAITING}
    with gevent.Timeout(10):
        test.runner.stop()
    assert len(test.crew) == 0


def test_a_stop_lets_requests_finish(test):
    begin(test)
    stopping = gevent.spawn(test.runner.stop)
    gevent.sleep(0.05)
    assert not stopping.ready()
    test.answer.set()
    stopping.join(10)
    assert [r.outcome for r in test.records] == ["ok", "ok"]
    assert all(c.closed for c in test.clients)


def test_a_user_cut_in_mid_stream_is_recorded_as_cancelled_and_fires_nothing(test):
    fired = []
    test.environment.events.request.add_listener(lambda **kw: fired.append(kw))
    batch = begin(test, jobs=2)
    for user in list(test.crew.users):
        user.greenlet.kill()
    assert [r.outcome for r in test.records] == [CANCELLED, CANCELLED]
    assert batch.in_flight == 0
    assert fired == []


def fired_for(record: RequestRecord, api="chat", simulated=False):
    environment, calls = Environment(), []
    environment.events.request.add_listener(lambda **kw: calls.append(kw))
    fire_request(environment, record, api, simulated=simulated)
    (call,) = calls
    return call


def test_the_request_event_has_the_full_precision():
    call = fired_for(record(engine="a", scenario="concurrency", e2e_ms=1249.123456, response_bytes=77))
    assert (call["request_type"], call["name"]) == ("CHAT", "a concurrency")
    assert call["response_time"] == 1249.123456
    assert call["response_length"] == 77
    assert call["exception"] is None
    assert fired_for(record(), "completions")["request_type"] == "COMPLETION"


def test_a_simulated_engine_is_called_so_in_locusts_tables():
    call = fired_for(record(engine="a", scenario="concurrency"), simulated=True)
    assert call["name"] == "a concurrency (simulated)"


def test_a_failed_request_says_why():
    call = fired_for(
        record(outcome="failed", error="http_429", error_text="slow down", e2e_ms=None, complete_ms=3.5)
    )
    assert str(call["exception"]) == "http_429: slow down"
    assert call["response_time"] == 3.5
    assert locust.__version__
