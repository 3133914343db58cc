import locust  # noqa: F401

import gevent
import pytest
from gevent.event import Event

from loadgen.record import DRAIN, MEASURE, WARMUP
from loadgen.users.crew import Batch, Crew
from loadgen.workload.endless import Endless
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane, record


def batch(n, phase=MEASURE):
    b = Batch(lane(), phase, 0, 0)
    for i in range(n):
        b.add(Prompt(i, "x"), 8)
    return b


class Worker:
    """A user: takes jobs; `hold` keeps each until it is let go."""

    def __init__(self, crew, hold=None):
        self.crew = crew
        self.did = []
        self.hold = hold
        crew.join(self)
        self.greenlet = gevent.spawn(self.run)

    def run(self):
        while True:
            job = self.crew.take(self)
            if self.hold is not None:
                self.hold.wait()
            self.did.append(job.prompt.pair)
            job.batch.finish(record())


@pytest.fixture
def crew():
    crew = Crew()
    yield crew
    for worker in list(crew.users):
        worker.greenlet.kill()


def test_members_share_one_queue_until_it_is_empty(crew):
    workers = [Worker(crew) for _ in range(3)]
    b = batch(10)
    crew.begin(b, workers, [0, 0, 0])
    assert b.done.wait(5)
    assert sorted(p for w in workers for p in w.did) == list(range(10))
    assert b.complete
    assert (b.finished, b.failed, b.in_flight, b.output_tokens) == (10, 0, 0, 80)


def test_as_many_are_in_flight_as_there_are_members(crew):
    hold = Event()
    workers = [Worker(crew, hold) for _ in range(4)]
    b = batch(10)
    crew.begin(b, workers, [0] * 4)
    gevent.idle()
    assert (b.in_flight, len(b.jobs)) == (4, 6)
    hold.set()
    assert b.done.wait(5)


def test_who_comes_in_the_middle_of_a_turn_works_from_the_next_on(crew):
    hold = Event()
    first = Worker(crew, hold)
    b = batch(3)
    crew.begin(b, [first], [0])
    late = Worker(crew)
    gevent.idle()
    assert late.did == []
    hold.set()
    assert b.done.wait(5)
    assert late.did == []
    crew.end(b)
    b2 = batch(2)
    crew.begin(b2, list(crew.users), [0, 0])
    assert b2.done.wait(5)
    assert late.did


def test_when_all_members_leave_others_finish_the_turn(crew):
    hold = Event()
    gone = Worker(crew, hold)
    other = Worker(crew)
    b = batch(5)
    crew.begin(b, [gone], [0])
    gevent.idle()
    hold.set()
    gone.greenlet.kill()  # in mid-request: that job is finished as never sent
    crew.leave(gone)
    b.finish(None)
    assert b.done.wait(5)
    assert len(other.did) + len(gone.did) == 4


def test_when_nobody_is_left_the_next_user_to_come_finishes_the_turn(crew):
    b = batch(2)
    crew.begin(b, [], [])
    gevent.idle()
    assert not b.done.is_set()
    Worker(crew)
    assert b.done.wait(5)


def test_users_who_were_not_here_when_the_turn_was_planned_do_it_if_nobody_else_can(crew):
    Worker(crew)
    b = batch(2)
    crew.begin(b, [], [])
    assert b.done.wait(5)
    crew.end(b)
    b = batch(2)
    crew.begin(b, ["somebody who has left"], [0.0])
    assert b.done.wait(5)


def test_staggered_members_wait_for_their_time_and_only_once(crew):
    workers = [Worker(crew) for _ in range(2)]
    b = batch(4)
    crew.begin(b, workers, [0.0, 3600.0])
    gevent.idle()
    assert len(workers[0].did) == 4
    assert workers[1].did == []


def test_only_the_first_request_of_a_user_has_an_appointed_time():
    b = batch(2)
    b.members = {"u": 0.0}
    b.start_mono_ns = 5
    first, second = b.claim("u"), b.claim("u")
    assert (first.scheduled_mono_ns, second.scheduled_mono_ns) == (5, None)
    assert b.claim("u") is None
    assert b.claim("stranger") is None


def test_a_halted_turn_lets_requests_in_flight_finish_as_drain():
    b = batch(5)
    b.members = {"u": 0.0, "v": 0.0}
    b.claim("u")
    assert b.record_phase == MEASURE
    b.halt()
    assert b.record_phase == DRAIN
    assert b.claim("v") is None
    assert not b.done.is_set()
    b.finish(record())
    assert b.done.is_set()
    assert not b.complete


def test_a_halted_warm_up_stays_warm_up():
    b = batch(1, WARMUP)
    b.halt()
    assert b.record_phase == WARMUP


def test_the_turn_ends_with_its_last_response():
    b = batch(3)
    b.members = {"u": 0.0}
    for _ in range(3):
        b.claim("u")
    b.finish(record(sent_ns=1_000_000, complete_ms=2.0))
    b.finish(record(sent_ns=2_000_000, complete_ms=9.0))
    b.finish(record(sent_ns=3_000_000, complete_ms=1.0, outcome="failed"))
    assert b.last_end_ns == 11_000_000
    assert b.failed == 1
    assert len(b.ttfts_ms) == 2


def test_a_prompts_own_answer_length_wins():
    b = Batch(lane(), MEASURE, 0, 0)
    b.add(Prompt(3, "x", output_tokens=5), 8)
    assert b.jobs[0].body == b"m:3:5"
    assert b.jobs[0].output_tokens == 5


class Idle:
    """A user whose part the test plays."""

    def __init__(self):
        self.greenlet = gevent.spawn(int)


def conversation(questions, n=1):
    b = Batch(lane(), MEASURE, 0, 0)
    for i in range(n):
        b.add(Prompt(i * questions, "q", follow_ups=("next",) * (questions - 1)), 8)
    return b


def talk(crew, b, answers):
    """One user's conversation; the pairs it sent."""
    user = Idle()
    crew.join(user)
    crew.begin(b, [user], [0])
    job, sent = crew.take(user), []
    while job is not None:
        sent.append(job.prompt.pair)
        following = b.follow(job, answers.pop(0) if answers else None)
        b.finish(record())
        assert b.done.is_set() == (following is None)
        job = following if following is not None and b.begin(following) else None
    return sent


def test_a_conversation_is_one_job_and_several_requests(crew):
    b = conversation(3)
    assert talk(crew, b, ["a", "b", "c"]) == [0, 1, 2]
    assert (b.total, b.finished, b.skipped, b.complete) == (3, 3, 0, True)


def test_without_an_answer_a_conversation_ends_and_the_turn_is_complete(crew):
    b = conversation(4)
    assert talk(crew, b, ["a", None]) == [0, 1]
    assert (b.finished, b.skipped, b.complete) == (2, 2, True)


def test_a_user_who_goes_while_it_thinks_leaves_the_rest_unasked(crew):
    b = conversation(3)
    user = Idle()
    crew.join(user)
    crew.begin(b, [user], [0])
    following = b.follow(crew.take(user), "answer")
    b.finish(record())
    assert following is not None
    b.break_off()
    assert b.done.is_set()
    assert (b.finished, b.skipped, b.thinking, b.complete) == (1, 0, 0, False)


def test_nothing_is_asked_after_a_halt(crew):
    b = conversation(3)
    user = Idle()
    crew.join(user)
    crew.begin(b, [user], [0])
    following = b.follow(crew.take(user), "answer")
    b.finish(record())
    b.halt()
    assert not b.done.is_set()  # its user thinks
    assert not b.begin(following)
    assert b.done.is_set()
    assert not b.complete
    crew.end(b)


def open_batch(name="a"):
    pool = tuple(Prompt(i, f"salt{i}: text") for i in range(3))
    made = Batch(lane(name), MEASURE, 0, 0, Endless(pool, "key"))
    made.output_tokens_each = 8
    return made


def busy(b, n):
    with gevent.Timeout(5):
        while b.in_flight != n:
            gevent.sleep(0)


def test_an_open_batch_goes_on_until_it_is_closed_and_what_is_in_flight_belongs_to_it(crew):
    hold = Event()
    workers = [Worker(crew, hold) for _ in range(2)]
    b = open_batch()
    crew.begin(b, workers, [0, 0])
    busy(b, 2)
    assert not b.done.is_set()
    crew.seal(b)
    assert not b.done.is_set()
    hold.set()
    assert b.done.wait(5)
    assert b.complete
    assert (b.total, b.finished, b.record_phase) == (2, 2, MEASURE)
    assert sorted(p for w in workers for p in w.did) == [0, 1]


def test_who_comes_while_a_batch_is_open_works_at_once_and_who_goes_finishes(crew):
    hold = Event()
    first = Worker(crew, hold)
    b = open_batch()
    crew.begin(b, [first], [0])
    late = Worker(crew, hold)
    busy(b, 2)
    crew.leave(first)  # Locust lets it finish before that; its request is in flight nevertheless
    assert list(b.members) == [late]
    crew.leave(late)
    assert not b.members
    assert not b.done.is_set()
    third = Worker(crew, hold)
    busy(b, 3)
    crew.seal(b)
    hold.set()
    assert b.done.wait(5)
    assert len(third.did) == 1
    for gone in (first, late):
        gone.greenlet.kill()


def test_open_batches_have_equally_many_users_whoever_comes_and_goes(crew):
    hold = Event()
    a, b = open_batch("a"), open_batch("b")
    users = [Worker(crew, hold) for _ in range(6)]
    crew.begin(a, users[:3], [0] * 3)
    crew.begin(b, users[3:], [0] * 3)
    for user in users[:3]:
        user.greenlet.kill()
        crew.leave(user)
    assert sorted((len(a.members), len(b.members))) == [1, 2]
    users.append(Worker(crew, hold))
    assert (len(a.members), len(b.members)) == (2, 2)
    assert not set(a.members) & set(b.members)


def test_a_run_that_is_stopped_leaves_its_open_turn_incomplete(crew):
    hold = Event()
    workers = [Worker(crew, hold)]
    b = open_batch()
    crew.begin(b, workers, [0])
    busy(b, 1)
    crew.halt()
    hold.set()
    assert b.done.wait(5)
    assert not b.complete
    assert b.record_phase == DRAIN


def test_conversations_of_an_open_batch_count_what_was_asked(crew):
    talk = Prompt(
        0, "aaaa: hi", messages=({"role": "user", "content": "aaaa: hi"},), follow_ups=("b: x", "c: y")
    )
    b = Batch(lane(), MEASURE, 0, 0, Endless((talk,), "key"))
    b.members = {"u": -1.0}
    job = b.claim("u")
    following = b.follow(job, "an answer")
    b.finish(record())
    assert (b.total, b.thinking) == (1, 1)
    assert b.begin(following)
    assert b.total == 2
    last = b.follow(following, "another")
    b.finish(record())
    b.close()
    assert not b.begin(last)  # closed while the user thought
    assert b.done.is_set()
    assert (b.total, b.finished, b.skipped, b.complete) == (2, 2, 0, True)
