"""A fleet and its workers, talking in one process."""

from __future__ import annotations

import locust  # noqa: F401

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import orjson
import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.record import MEASURE
from loadgen.store.jsonl import read_rows
from loadgen.users import messages, worker
from loadgen.users.crew import Batch
from loadgen.users.lane import Lane
from loadgen.users.windows import WindowWriter
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane
from tests.unit.users.wires import Net, until

KEY = "LOADGEN_TEST_FLEET_KEY"


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    made = Net(tmp_path, engines=[EngineSpec(name=n, kind="vllm", url="http://127.0.0.1:9") for n in "ab"])
    yield made
    made.stop()


def batch(jobs: int, on: Lane | None = None, turn: int = 0) -> Batch:
    made = Batch(on or lane(), MEASURE, turn, 0)
    for i in range(jobs):
        made.add(Prompt(i, f"prompt {i}"), 8)
    return made


def go(net: Net, one: Batch, members: Any = None) -> None:
    members = list(net.fleet.users) if members is None else members
    net.fleet.begin(one, members, [0.0] * len(members))


def finish(net: Net, one: Batch) -> None:
    assert one.done.wait(20)
    net.fleet.end(one)


def by_worker(net: Net) -> Counter[str]:
    return Counter(r.worker for r in net.records)


def test_each_worker_has_its_share_and_every_record_arrives_once(net: Net, tmp_path: Path) -> None:
    net.open(6, 5, 5)
    one = batch(64)
    go(net, one)
    finish(net, one)
    assert one.complete
    assert (one.total, one.finished, one.in_flight) == (64, 64, 0)
    assert sorted(r.pair for r in net.records) == list(range(64))
    assert by_worker(net) == {"w0": 24, "w1": 20, "w2": 20}
    for name, count in by_worker(net).items():
        rows = list(read_rows(tmp_path / "r" / f"requests-{name}.jsonl"))
        assert len(rows) == count
        assert [r["point_ns"] for r in rows] == [r.point_ns for r in net.records if r.worker == name]


def test_nobody_begins_before_all_are_ready(net: Net) -> None:
    one, two = net.open(1, 1)
    two.down.cut = True
    b = batch(4)
    begun = gevent.spawn(go, net, b)
    until(lambda: messages.BATCH in one.heard)
    gevent.sleep(0.05)
    assert messages.BEGIN not in one.heard
    two.die()  # only the watch can end this
    begun.join(20)
    finish(net, b)
    assert not b.complete
    assert by_worker(net) == {"w0": 2}


def test_a_worker_without_users_has_no_part(net: Net) -> None:
    _, idle = net.open(1, 0)
    one = batch(3)
    go(net, one)
    finish(net, one)
    assert one.complete
    assert messages.BATCH not in idle.heard


def test_members_are_single_users_so_engines_can_share_a_worker(net: Net) -> None:
    net.open(2, 2)
    members = list(net.fleet.users)
    net.hold.clear()
    a, b = batch(8, lane("a")), batch(8, lane("b"))
    plan = [(a, members[::2], [0.0] * 2), (b, members[1::2], [0.0] * 2)]
    net.fleet.prepare(plan)
    for line in plan:
        net.fleet.begin(*line)
    crews = [w.session.crew for w in net.workers.values()]
    until(lambda: sum(c.in_flight for c in crews) == 4)
    for crew in crews:
        shares = [(x.lane.name, x.in_flight, len(x.members)) for x in crew.batches]
        assert shares == [
            ("a", 1, 1),
            ("b", 1, 1),
        ]
    assert net.fleet.in_flight == 4
    net.hold.set()
    finish(net, a)
    finish(net, b)
    assert Counter(r.engine for r in net.records) == {"a": 8, "b": 8}


def test_a_lost_worker_leaves_its_turn_incomplete_and_the_next_to_the_others(net: Net) -> None:
    one, two = net.open(2, 2)
    net.hold.clear()
    b = batch(8)
    go(net, b)
    until(lambda: two.session.crew.in_flight == 2)
    two.die()
    until(lambda: net.lost)
    (lost, why), *more = net.lost
    assert (lost.name, why, more) == ("w1", "it has gone", [])
    assert not b.done.is_set()  # w0 is at it
    net.hold.set()
    finish(net, b)
    assert not b.complete
    later = batch(8, turn=1)
    go(net, later)
    finish(net, later)
    assert later.complete
    assert by_worker(net) == {"w0": 12}
    assert one.heard.count(messages.BEGIN) == 2


def test_a_worker_that_was_given_up_is_told_to_go(net: Net) -> None:
    _, two = net.open(1, 1)
    net.clients[two.id].state = "missing"  # held up: it lives
    until(lambda: "quit" in two.heard)
    assert net.lost[0][0].name == "w1"
    two.send_message(messages.USERS, {"users": 7})  # and not listened to
    gevent.sleep(0.05)
    assert len(net.fleet) == 1


def test_halted_nothing_more_is_sent_and_what_is_in_flight_arrives(net: Net) -> None:
    net.open(2, 2)
    net.hold.clear()
    b = batch(40)
    go(net, b)
    until(lambda: sum(w.session.crew.in_flight for w in net.workers.values()) == 4)
    net.fleet.halt()
    assert not net.fleet.drain(0.05)
    net.hold.set()
    assert net.fleet.drain(20)
    assert len(net.records) == 4
    assert {r.phase for r in net.records} == {"drain"}
    assert not b.complete
    go(net, late := batch(4))  # the director had this in hand when it was stopped
    assert late.done.is_set()
    assert not late.complete
    assert len(net.records) == 4


def test_what_is_said_twice_counts_once(net: Net) -> None:
    (one,) = net.open(1)
    b = batch(5)
    go(net, b)
    finish(net, b)
    lines = (net.run.dir.path / "requests-w0.jsonl").read_bytes().splitlines()
    data, count = messages.pack_lines(lines)
    assert count == 5
    one.send_message(messages.ROWS, {"records": data})
    one.send_message(messages.USERS, {"users": 3})
    until(lambda: len(net.fleet) == 3)
    assert len(net.records) == 5


def test_a_worker_writes_in_the_masters_time(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock is three seconds ahead (here: what it says when it is asked)."""
    ahead_ns = 3 * 10**9
    real = worker.time.time_ns

    class Ahead:
        time_ns = staticmethod(lambda: real() + ahead_ns)

    monkeypatch.setattr(worker, "time", Ahead)
    net.open(1)
    b = batch(3)
    before = real()
    go(net, b)
    finish(net, b)
    net.fleet.close()
    after = real()
    (facts,) = net.fleet.facts()
    assert facts["clock_offset_ms"] == pytest.approx(3000, abs=100)
    assert all(before - 10**8 < r.point_ns < after + 10**8 for r in net.records)
    assert all(abs(10**18 - ahead_ns - r.sent_ns) < 10**8 for r in net.records)
    seconds = [orjson.loads(line)["t_ns"] for line in net.windows]
    assert seconds
    assert all(before - 2 * 10**9 < t <= after for t in seconds)


def test_users_change_between_turns(net: Net) -> None:
    (one,) = net.open(2)
    net.hold.clear()
    b = batch(4)
    go(net, b)
    until(lambda: one.session.crew.in_flight == 2)
    changing = gevent.spawn(one.start_worker, {"U": 5})
    gevent.sleep(0.1)
    assert one.started == []
    net.hold.set()
    finish(net, b)
    changing.join(5)
    assert one.started == [{"U": 5}]


def test_the_end_is_answered_by_every_worker(net: Net) -> None:
    net.open(1, 0)
    net.fleet.close()
    assert all(w.gone.is_set() for w in net.fleet.workers.values())
    assert all(w.session.run is None for w in net.workers.values())
    assert {orjson.loads(line)["worker"] for line in net.windows} == {"w0", "w1"}
    net.fleet.close()


def with_key(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv(KEY, raising=False)
    spec = EngineSpec(name="a", kind="vllm", url="http://127.0.0.1:9", api_key_env=KEY)
    return Settings(engines=(spec,))


def test_a_worker_without_a_key_is_a_problem_before_the_run_and_left_out_later(
    net: Net, monkeypatch: pytest.MonkeyPatch
) -> None:
    net.open(1)
    b = batch(2)
    go(net, b)
    finish(net, b)
    net.run.settings = with_key(monkeypatch)
    net.add(1)  # says that it is there
    until(lambda: net.lost)
    late, why = net.lost[0]
    assert (late.name, late.greeted, why) == (
        "w1",
        False,
        f"engine a: the environment variable {KEY} is not set",
    )
    assert net.problems == []


def test_a_worker_without_a_key_is_a_problem(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    net.run.settings = with_key(monkeypatch)
    net.add(1)
    net.fleet.open(net.run)
    (sentence, *_) = until(lambda: net.problems)
    assert sentence.startswith("worker w0 on ")
    assert sentence.endswith(f"the environment variable {KEY} is not set")


def test_a_worker_of_another_version_is_a_problem(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "__version__", "0.0.1")
    net.add(1)
    net.fleet.open(net.run)
    (sentence, *_) = until(lambda: net.problems)
    assert "it has loadgen 0.0.1, the master has" in sentence


def test_rows_that_cannot_be_sent_are_kept_and_go_first(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = net.open(1)
    broken = True
    send = one.send_message

    def flaky(kind: str, data: Any = None, client_id: str | None = None) -> None:
        if broken and kind == messages.ROWS:
            raise worker.RPCError("the channel is broken")
        send(kind, data, client_id)

    monkeypatch.setattr(one, "send_message", flaky)
    monkeypatch.setattr(one.session, "_see_it_through", lambda *_: None)
    b = batch(6)
    go(net, b)
    until(lambda: len(one.session._lines) == 6)
    gevent.sleep(3 * worker.SEND_S)
    assert net.records == []
    broken = False
    until(lambda: len(net.records) == 6)
    assert [r.sequence for r in net.records] == [1, 2, 3, 4, 5, 6]


def test_windows_share_a_turn_by_its_workers(net: Net) -> None:
    one, _ = net.open(1, 1)
    assert isinstance(one.session._windows, WindowWriter)
    net.hold.clear()
    b = batch(4)
    go(net, b)
    row = until(
        lambda: next((r for r in map(orjson.loads, net.windows) if r.get("measured_s") == 0.5), None), 5
    )
    assert (row["workers"], row["in_flight"], row["users"]) == (2, 1, 1)
    net.hold.set()
    finish(net, b)
