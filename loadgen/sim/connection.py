"""One client's connection: requests parsed by llhttp, answered one after another."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httptools

from loadgen.sim.answering import Answering

if TYPE_CHECKING:
    from loadgen.sim.server import Server

KEEP_ALIVE_S = 5.0  # both servers close a connection that was idle for so long


@dataclass(slots=True)
class HttpRequest:
    """A request as it was read."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes
    keep_alive: bool
    wall_ns: int
    mono_ns: int


@dataclass(slots=True)
class _Partial:
    url: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


class Connection(asyncio.Protocol):
    """Reads requests and hands them to the server, the next one when the last one is answered."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._partial = _Partial()
        self._waiting: deque[HttpRequest] = deque()
        self._idle: asyncio.TimerHandle | None = None
        self.busy = False
        self.answering: Answering | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._stop_idle()
        if self.answering is not None:
            self.answering.client_gone()
            self.answering = None

    def data_received(self, data: bytes) -> None:
        self._stop_idle()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError:
            self._server.bad_request(self)
            return
        self._next()

    # llhttp's callbacks

    def on_url(self, url: bytes) -> None:
        self._partial.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._partial.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._partial.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._partial.body += data

    def on_message_complete(self) -> None:
        p, self._partial = self._partial, _Partial()
        request = HttpRequest(
            method=self._parser.get_method().decode("latin-1"),
            path=p.url.decode("latin-1").partition("?")[0],
            headers=p.headers,
            body=bytes(p.body),
            keep_alive=self._parser.should_keep_alive(),
            wall_ns=time.time_ns(),
            mono_ns=time.monotonic_ns(),
        )
        self._waiting.append(request)

    # Answers

    def _next(self) -> None:
        if not self.busy and self._waiting and not self.transport.is_closing():
            self.busy = True
            self._server.handle(self, self._waiting.popleft())

    def answered(self, keep: bool | None) -> None:
        """The answer is complete: keep the connection, close it (False), or leave it alone (None)."""
        self.answering = None
        if keep is None:
            return
        self.busy = False
        if not keep:
            self.transport.close()
        elif self._waiting:
            asyncio.get_running_loop().call_soon(self._next)
        else:
            self._idle = asyncio.get_running_loop().call_later(KEEP_ALIVE_S, self.transport.close)

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
