"""Fifty workers' records through Locust's own channel: a real master, real sockets, nothing lost."""

from __future__ import annotations

import locust
from locust.env import Environment
from locust.event import Events
from locust.rpc import Message
from locust.rpc import zmqrpc as rpc

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
import psutil
import pytest

from loadgen import __version__
from loadgen.config import EngineSpec, Settings
from loadgen.record import RequestRecord
from loadgen.store import JournalWriter
from loadgen.store.jsonl import read_rows
from loadgen.users import messages
from loadgen.users.fleet import Fleet
from tests.unit.users.fakes import record
from tests.unit.users.wires import until

WORKERS = 50
RECORDS = 8  # of a message: what a worker collects in 0.2 s at 40 requests/s
MESSAGES = 15  # 6,000 records in all: 3 s at 2,000 requests/s, sent as fast as the master takes them
EVENTS = 256


class Master:
    def __init__(self, folder: Path) -> None:
        environment = Environment(events=Events())
        self.runner = environment.create_master_runner("127.0.0.1", 0)
        self.seen: Counter[tuple[str, int]] = Counter()
        self.journal = JournalWriter(folder / "requests.jsonl")
        self.lost: list[str] = []
        self.fleet = Fleet(
            self.runner,
            self.take,
            lambda _: None,
            lambda w, why: self.lost.append(f"{w}: {why}"),
            self.lost.append,
        )
        for kind in messages.TO_MASTER:
            self.runner.register_message(
                kind, lambda environment, msg, kind=kind, **_: self.fleet.heard(kind, msg.node_id, msg.data)
            )
        settings = Settings(engines=(EngineSpec(name="a", kind="vllm", url="http://127.0.0.1:9"),))
        self.run: Any = SimpleNamespace(name="r", settings=settings)

    def take(self, made: RequestRecord) -> None:
        """As the session does: into the journal, and that is all that is kept."""
        self.journal.append(made)
        self.seen[made.worker, made.sequence] += 1

    def stop(self) -> None:
        for worker in self.fleet.workers.values():
            worker.gone.set()  # they do not say goodbye
        self.fleet.close()
        self.runner.greenlet.kill(block=True)
        self.runner.server.close(linger=0)
        self.journal.close()


class FarWorker:
    """A worker as the master hears it: it joins, beats, and sends rows."""

    def __init__(self, number: int, port: int) -> None:
        self.id = f"host-{number}"
        self.name = ""
        self.client = rpc.Client("127.0.0.1", port, self.id)
        self.client.socket.setsockopt(rpc.zmq.LINGER, 0)
        self.sequence = 0
        self.say("client_ready", locust.__version__)
        self.greenlets = [gevent.spawn(self.listen), gevent.spawn(self.beat)]

    def say(self, kind: str, data: Any) -> None:
        self.client.send(Message(kind, data, self.id))

    def listen(self) -> None:
        self.say(messages.HERE, {})
        while True:
            message = self.client.recv()
            if message.type == messages.CLOCK:
                self.say(messages.CLOCK, {"asked_ns": message.data["asked_ns"], "said_ns": time.time_ns()})
            elif message.type == messages.RUN:
                order = messages.unpack(message.data)
                assert order["version"] == __version__
                self.name = order["worker"]
                self.say(messages.HELLO, {"host": self.id})
                self.say(messages.USERS, {"users": 1})

    def beat(self) -> None:
        while True:
            self.say("heartbeat", {"state": "running", "current_cpu_usage": 1, "current_memory_usage": 1})
            gevent.sleep(1)

    def flood(self, count: int) -> None:
        for _ in range(count):
            lines = []
            for _ in range(RECORDS):
                self.sequence += 1
                one = record(
                    engine="a",
                    worker=self.name,
                    sequence=self.sequence,
                    point_ns=self.sequence,
                    event_us=[20_000 * k + (self.sequence * 37 + k * k) % 5_000 for k in range(EVENTS)],
                )
                lines.append(one.to_json())
            part, packed = messages.pack_lines(lines)
            assert packed == RECORDS
            self.say(messages.ROWS, {"records": part})
            gevent.sleep(0)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    made = Master(tmp_path)
    yield made
    made.stop()


def test_fifty_workers_at_2000_requests_a_second(master: Master, tmp_path: Path) -> None:
    workers = [FarWorker(n, master.runner.server.port) for n in range(WORKERS)]
    try:
        master.fleet.open(master.run)
        until(lambda: len(master.fleet) == WORKERS and all(w.name for w in workers), 30)

        def send_half() -> int:
            gevent.joinall([gevent.spawn(w.flood, MESSAGES) for w in workers], raise_error=True)
            until(lambda: sum(master.seen.values()) == sum(w.sequence for w in workers), 60)
            memory: int = psutil.Process().memory_info().rss
            return memory

        first = send_half()
        second = send_half()
    finally:
        for worker in workers:
            gevent.killall(worker.greenlets)
            worker.client.close(linger=0)
    total = 2 * WORKERS * MESSAGES * RECORDS
    assert len(master.seen) == total == 12_000
    assert set(master.seen.values()) == {1}
    assert {w for w, _ in master.seen} == {f"w{n}" for n in range(WORKERS)}
    assert sorted(f["records"] for f in master.fleet.facts()) == [total // WORKERS] * WORKERS
    # Heartbeats came through between the records: Locust gives up workers that it does not hear for 3 s.
    assert master.lost == []
    # The second half left nothing behind: as JSON it would be 18 MB, as objects several times that.
    assert second - first < 15e6
    master.journal.close()
    rows = list(read_rows(tmp_path / "requests.jsonl"))
    assert len(rows) == total
    assert all(len(r["event_us"]) == EVENTS for r in rows[::100])
