"""The client of one user for one engine; requests to one with replicas are spread over them in turn."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from typing import Any

import gevent

from loadgen.config import Timeouts
from loadgen.stream.client import StreamClient
from loadgen.stream.exchange import Exchange
from loadgen.stream.reader import Reader
from loadgen.users.lane import Lane


def client_for(lane: Lane, reader: Reader | None, timeouts: Timeouts) -> StreamClient | ReplicaClient:
    """For one greenlet at a time."""
    urls = lane.engine.spec.urls
    if len(urls) == 1:
        return StreamClient(lane.engine, reader, timeouts)
    return ReplicaClient(lane, [StreamClient(lane.engine.at(k), reader, timeouts) for k in range(len(urls))])


class ReplicaClient:
    """Each request goes to the replica whose turn it is among all requests of this engine, here in this
    process. One that asks further about an answer (the text of the one before was kept) goes where that was:
    a conversation's beginning is in the cache of one replica alone."""

    def __init__(self, lane: Lane, clients: list[StreamClient]) -> None:
        self._lane = lane
        self._clients = clients
        self._latest = 0
        self._goes_on = False

    def send(self, path: str, body: bytes, *, keep_text: bool = False, **more: Any) -> Exchange:
        """As StreamClient.send; the exchange says which replica it was."""
        if not self._goes_on:
            self._latest = self._lane.next_replica % len(self._clients)
            self._lane.next_replica += 1
        self._goes_on = False  # should this one be cut off
        exchange = self._clients[self._latest].send(path, body, keep_text=keep_text, **more)
        exchange.replica = self._latest
        self._goes_on = keep_text and bool(exchange.text)
        return exchange

    @property
    def ready(self) -> bool:
        """Whether there is a connection to whichever replica's turn it will be."""
        return all(client.ready for client in self._clients)

    def open(self) -> None:
        """Connect to all of them, at once."""
        gevent.joinall([gevent.spawn(client.open) for client in self._clients])

    def cancelled_exchange(self) -> Exchange | None:
        """The exchange that a stop of the user cut off."""
        exchange = self._clients[self._latest].cancelled_exchange()
        if exchange is not None:
            exchange.replica = self._latest
        return exchange

    def close(self) -> None:
        for client in self._clients:
            client.close()
