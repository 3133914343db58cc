"""Open batches of a fleet: turns whose users vary."""

from __future__ import annotations

import locust  # noqa: F401

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.config import EngineSpec
from loadgen.record import MEASURE
from loadgen.users.crew import Batch
from loadgen.workload.endless import Endless
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane
from tests.unit.users.wires import FakeUser, Net, until

POOL = tuple(Prompt(i, f"salt{i}: text {i}") for i in range(4))


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    made = Net(tmp_path, engines=[EngineSpec(name=n, kind="vllm", url="http://127.0.0.1:9") for n in "ab"])
    made.hold.clear()  # each user has one request in flight, until the test lets go
    yield made
    made.stop()


def begin(net: Net, name: str = "a") -> Batch:
    made = Batch(lane(name), MEASURE, 0, 0, Endless(POOL, "key"))
    made.output_tokens_each = 8
    members = list(net.fleet.users)
    net.fleet.begin(made, members, [0.0] * len(members))
    return made


def finish(net: Net, one: Batch) -> None:
    net.fleet.seal(one)
    here = [w for w in net.workers.values() if w.id in net.fleet.workers]
    until(lambda: all(not b.open for w in here for b in w.session.crew.batches))
    net.hold.set()
    assert one.done.wait(20)
    net.fleet.end(one)


def in_flight(net: Net) -> list[int]:
    return [w.session.crew.in_flight for w in net.workers.values()]


def test_every_worker_sends_prompts_of_its_own_until_the_batch_is_closed(net: Net) -> None:
    net.open(2, 1)
    one = begin(net)
    until(lambda: in_flight(net) == [2, 1])
    assert not one.done.is_set()
    finish(net, one)
    assert one.complete
    assert (one.total, one.finished) == (3, 3)
    assert Counter(r.worker for r in net.records) == {"w0": 2, "w1": 1}
    assert sorted(r.pair for r in net.records) == [0, 1, 2]


def test_users_who_come_work_at_once_also_where_there_were_none(net: Net) -> None:
    net.open(1, 0)
    one = begin(net)
    until(lambda: in_flight(net) == [1, 0])
    for worker in net.workers.values():
        worker.users.append(FakeUser(worker))
    until(lambda: in_flight(net) == [2, 1])
    until(lambda: len(one.members) == 3)
    finish(net, one)
    assert one.complete
    assert one.finished == 3


def test_a_late_worker_takes_part(net: Net) -> None:
    net.open(1)
    one = begin(net)
    late = net.add(2)
    net.fleet.greet(late.id)
    until(lambda: in_flight(net) == [1, 2])
    until(lambda: len(one.members) == 3)
    finish(net, one)
    assert one.complete
    assert Counter(r.worker for r in net.records) == {"w0": 1, "w1": 2}
    assert len({r.pair for r in net.records}) == 3


def test_a_lost_worker_leaves_the_batch_open_for_the_others(net: Net) -> None:
    _, two = net.open(1, 1)
    one = begin(net)
    until(lambda: in_flight(net) == [1, 1])
    two.die()
    until(lambda: net.lost)
    assert one.open
    assert not one.done.is_set()
    finish(net, one)
    assert not one.complete
    assert Counter(r.worker for r in net.records) == {"w0": 1}


def test_locust_may_change_the_users_of_a_worker_while_a_batch_is_open(net: Net) -> None:
    (worker,) = net.open(1)
    one = begin(net)
    until(lambda: in_flight(net) == [1])
    worker.session._start_worker_between_turns({"Load": 3})
    assert worker.started == [{"Load": 3}]
    finish(net, one)
