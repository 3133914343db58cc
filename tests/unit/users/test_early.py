"""What a master says to a worker that is still being set up."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.runners import WorkerRunner

from inspect import unwrap
from types import SimpleNamespace
from typing import Any

import gevent
import pytest
from gevent.event import Event

from loadgen.users import early


class Runner:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def handle_message(self, msg: Any) -> None:
        self.heard.append(msg.type)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A worker's runner before `init`, in whose place Locust's would be."""
    monkeypatch.setattr(early, "WorkerRunner", Runner)
    monkeypatch.setattr(early, "_listening", Event())
    monkeypatch.setattr(Runner, "handle_message", Runner.handle_message)  # undone at the end
    early.install()
    return Runner()


def say(runner: Runner, *kinds: str) -> None:
    for kind in kinds:
        runner.handle_message(SimpleNamespace(type=kind))


def test_the_first_answer_is_heard_at_once_and_the_rest_in_order_when_somebody_listens(
    runner: Runner,
) -> None:
    channel = gevent.spawn(say, runner, "ack", "loadgen_run", "spawn")  # as Locust reads it: one by one
    gevent.idle()
    assert runner.heard == ["ack"]
    early.listen()
    channel.join(timeout=5)
    assert runner.heard == ["ack", "loadgen_run", "spawn"]
    say(runner, "stop")
    assert runner.heard[-1] == "stop"


def test_locusts_worker_is_still_built_so() -> None:
    """Connecting waits for one message, and every message goes through the one method."""
    assert "handle_message" in WorkerRunner.worker.__code__.co_names
    assert "connection_event" in WorkerRunner.connect_to_master.__code__.co_names
    # Another test may have installed ours around it.
    assert early.FIRST in unwrap(WorkerRunner.handle_message).__code__.co_consts
