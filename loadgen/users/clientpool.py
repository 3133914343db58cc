"""ClientPool: connections for requests that come when they come."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import time
from collections import deque
from collections.abc import Callable

import gevent

from loadgen.users.sending import Client

SHORTEST_LEAD_S, LONGEST_LEAD_S = 0.03, 1.0
OF_CONNECT = 3.0  # how much longer than the slowest connect a connection is opened ahead of its request


class ClientPool:
    """Clients of one engine. A request takes one whose connection is alive, so that connecting makes nothing
    late; connections are opened `lead_s` ahead of the request that will need one, no earlier: an idle
    connection takes a thread from some servers."""

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._idle: deque[Client] = deque()
        self._all: set[Client] = set()
        self._opening = 0
        self.lead_s = SHORTEST_LEAD_S

    def take(self) -> Client:
        """The one that was used last, as its connection is the likeliest to live; a new one if none does."""
        while self._idle:
            client = self._idle.pop()
            if client.ready:
                return client
            self._drop(client)
        return self._new()

    def give(self, client: Client) -> None:
        """It has nothing to do. (A server that closes its connections leaves clients of no use.)"""
        if client in self._all and client.ready:
            self._idle.append(client)
        else:
            self._drop(client)

    def ensure(self, soon: int) -> None:
        """So many requests are due within `lead_s`: open connections that are missing, without waiting."""
        while self._idle and not self._idle[-1].ready:  # if the newest lives, so do the few others, mostly
            self._drop(self._idle.pop())
        for _ in range(soon - len(self._idle) - self._opening):
            self._opening += 1
            gevent.spawn(self._open)

    def close(self) -> None:
        self._idle.clear()
        for client in list(self._all):
            self._drop(client)

    def _open(self) -> None:
        began = time.monotonic()
        client = self._new()
        try:
            client.open()
        finally:
            self._opening -= 1
        took_s = time.monotonic() - began
        self.lead_s = max(self.lead_s, min(LONGEST_LEAD_S, OF_CONNECT * took_s))
        if client in self._all and client.ready:
            self._idle.appendleft(client)
        else:
            self._drop(client)

    def _new(self) -> Client:
        client = self._make()
        self._all.add(client)
        return client

    def _drop(self, client: Client) -> None:
        self._all.discard(client)
        client.close()
