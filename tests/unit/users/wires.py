"""A master and workers in one process: Locust's runners as far as sessions see them, and wires between."""

from __future__ import annotations

import locust  # noqa: F401
from locust.rpc.protocol import Message

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
from gevent.queue import Queue

from loadgen.config import Settings
from loadgen.record import RequestRecord
from loadgen.store import RunDir
from loadgen.users.fleet import Fleet
from loadgen.users.peers import Worker
from loadgen.users.worker import WorkerSession
from tests.unit.users.fakes import record


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    with gevent.Timeout(seconds):
        while not (value := condition()):
            gevent.sleep(0.005)
        return value


class Wire:
    """One way: messages arrive in order, as bytes would."""

    def __init__(self, deliver: Callable[[Message], None]) -> None:
        self._queue: Queue = Queue()
        self._deliver = deliver
        self.cut = False
        self._greenlet = gevent.spawn(self._run)

    def put(self, kind: str, data: Any, node: str) -> None:
        self._queue.put(Message(kind, data, node).serialize())

    def _run(self) -> None:
        for data in self._queue:
            if not self.cut:
                self._deliver(Message.unserialize(data))

    def stop(self) -> None:
        self._greenlet.kill()


class FakeWorker:
    """A worker process: its session, its wires, and users who answer each job after `hold` is set."""

    def __init__(self, net: Net, name: str, users: int) -> None:
        self.id = name
        self.net = net
        self.messages: dict[str, Any] = {}
        self.started: list[dict[str, int]] = []
        self.user_count = users
        self.user_greenlets: list[gevent.Greenlet] = []
        self.down = Wire(self._hear)
        self.up = Wire(lambda m: net.hear(m))
        self.heard: list[str] = []
        options = SimpleNamespace(stop_timeout=1)
        environment = SimpleNamespace(runner=self, parsed_options=options, events=net.events, stop_timeout=1)
        self.session = WorkerSession(environment)
        self.users = [FakeUser(self) for _ in range(users)]

    def register_message(self, kind: str, listener: Callable[..., None]) -> None:
        self.messages[kind] = listener

    def start_worker(self, counts: dict[str, int], **_: Any) -> None:
        self.started.append(counts)

    def send_message(self, kind: str, data: Any = None, client_id: str | None = None) -> None:
        self.up.put(kind, data, self.id)

    def _hear(self, message: Message) -> None:
        self.heard.append(message.type)
        if message.type in self.messages:
            self.messages[message.type](environment=None, msg=message)

    def die(self) -> None:
        """As by SIGKILL; Locust's master finds out."""
        self.up.cut = self.down.cut = True
        self.net.clients[self.id].state = "missing"

    def stop(self) -> None:
        for user in self.users:
            user.greenlet.kill()
        self.session._sender.kill()
        self.up.stop()
        self.down.stop()


class FakeUser:
    def __init__(self, worker: FakeWorker) -> None:
        self.worker = worker
        self.session = worker.session
        self.session.crew.join(self)
        self.greenlet = gevent.spawn(self._run)
        worker.user_greenlets.append(self.greenlet)

    def _run(self) -> None:
        while True:
            job = self.session.crew.take(self)
            self.worker.net.hold.wait()
            run = self.session.run
            batch = job.batch
            made = record(
                run=run.name,
                engine=batch.lane.name,
                phase=batch.record_phase,
                turn=batch.turn,
                pair=job.prompt.pair,
                sequence=run.next_sequence(),
                sent_ns=10**18,
                outcome="ok",
            )
            self.session.record_done(made)
            batch.finish(made)


class Net:
    """The master's runner, its fleet, and what came of it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.clients: dict[str, Any] = {}
        self.hold = gevent.event.Event()
        self.hold.set()
        self.workers: dict[str, FakeWorker] = {}
        self.events = SimpleNamespace(request=SimpleNamespace(fire=lambda **_: None))
        self.records: list[RequestRecord] = []
        self.windows: list[bytes] = []
        self.lost: list[tuple[Worker, str]] = []
        self.problems: list[str] = []
        self.target_user_count = 0
        self._indexes = itertools.count()
        self.settings = Settings(runs_dir=folder, **settings)
        self.run: Any = SimpleNamespace(name="r", settings=self.settings, dir=RunDir(folder / "r"))
        self.fleet = Fleet(
            self,
            self.records.append,
            self.windows.append,
            lambda worker, why: self.lost.append((worker, why)),
            self.problems.append,
        )

    def add(self, users: int) -> FakeWorker:
        name = f"id{len(self.workers)}"
        self.clients[name] = SimpleNamespace(state="ready")
        self.target_user_count += users
        self.workers[name] = FakeWorker(self, name, users)
        return self.workers[name]

    def open(self, *users: int) -> list[FakeWorker]:
        """A run with workers of so many users each, all of whom have joined."""
        made = [self.add(n) for n in users]
        self.fleet.open(self.run)
        until(lambda: len(self.fleet) == sum(users))
        return made

    def hear(self, message: Message) -> None:
        self.fleet.heard(message.type, message.node_id, message.data)

    def get_worker_index(self, worker_id: str) -> int:
        return int(worker_id.removeprefix("id"))

    def send_message(self, kind: str, data: Any = None, client_id: str | None = None) -> None:
        assert client_id is not None
        self.workers[client_id].down.put(kind, data, client_id)

    def stop(self) -> None:
        if self.fleet._watcher is not None:
            self.fleet._watcher.kill()
        for worker in self.workers.values():
            worker.stop()
