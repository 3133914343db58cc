"""Locust's worker connects to its master before it fires `init`: what the master says in between has to wait,
or it finds nobody who knows a run."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.runners import WorkerRunner

from functools import wraps
from typing import Any

from gevent.event import Event

FIRST = "ack"  # the answer to the worker's own first message; connecting waits for it

_listening = Event()


def install() -> None:
    """Hold back all messages but the first until `listen` is called. Once, before a runner is made."""
    handle = WorkerRunner.handle_message

    @wraps(handle)
    def handle_message(runner: WorkerRunner, msg: Any) -> None:
        if msg.type != FIRST:
            _listening.wait()
        handle(runner, msg)

    WorkerRunner.handle_message = handle_message  # type: ignore[assignment,method-assign]


def listen() -> None:
    """From now on messages find who they are meant for."""
    _listening.set()
