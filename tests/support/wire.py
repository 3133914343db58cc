"""A TCP server whose every byte a test decides: `handler(peer)` runs for each connection."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent
import gevent.server


class Peer:
    """One connection as the server sees it."""

    def __init__(self, sock: Any, number: int) -> None:
        self.sock = sock
        self.number = number
        self._left = b""

    def request(self) -> bytes | None:
        """The next whole request (head and body), None when the client is gone."""
        data = self._left
        while b"\r\n\r\n" not in data:
            more = self._recv()
            if not more:
                return None
            data += more
        head, _, rest = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(rest) < length:
            rest += self._recv()
        self._left = rest[length:]
        return head + b"\r\n\r\n" + rest[:length]

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def gone(self) -> bool:
        """Wait until the client has closed."""
        return not self._recv()

    def reset(self) -> None:
        """Close with RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def _recv(self) -> bytes:
        try:
            data: bytes = self.sock.recv(65536)
        except OSError:
            return b""
        return data


class Wire:
    """A running server; `connections` counts what came in, `requests` holds each request's bytes."""

    def __init__(self, handler: Callable[[Peer], None], context: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self._handler = handler
        kwargs = {"ssl_context": context} if context else {}
        self._server = gevent.server.StreamServer(("127.0.0.1", 0), self._serve, **kwargs)
        self._server.start()
        self.port: int = self._server.server_port
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}"

    def _serve(self, sock: Any, _address: Any) -> None:
        self.connections += 1
        peer = Peer(sock, self.connections)
        original = peer.request

        def request() -> bytes | None:
            found = original()
            if found is not None:
                self.requests.append(found)
            return found

        peer.request = request  # type: ignore[method-assign]
        self._handler(peer)

    def stop(self) -> None:
        self._server.stop(timeout=1)


@contextmanager
def wire(handler: Callable[[Peer], None], context: ssl.SSLContext | None = None) -> Iterator[Wire]:
    server = Wire(handler, context)
    try:
        with gevent.Timeout(30):
            yield server
    finally:
        server.stop()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TOKEN = b'data: {"id":"c-1","choices":[{"index":0,"delta":{"content":" tok"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"id":"c-1","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
DONE = b"data: [DONE]\n\n"
END = b"0\r\n\r\n"


def usage(output: int) -> bytes:
    return b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d}}\n\n' % output


def whole_stream(peer: Peer, tokens: int = 3) -> None:
    """A complete good answer."""
    peer.send(HEAD)
    for _ in range(tokens):
        peer.chunk(TOKEN)
    peer.chunk(FINISH)
    peer.chunk(usage(tokens))
    peer.chunk(DONE)
    peer.send(END)
