"""StreamClient: one Locust user's client. Sends a request, waits for its stream, hands back the Exchange."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from loadgen import __version__
from loadgen.config import EngineSpec, Timeouts
from loadgen.engines.chunk import Chunk
from loadgen.record import FAILED
from loadgen.stream import clock, outcome
from loadgen.stream.connection import ConnectError, Connection, Endpoint
from loadgen.stream.exchange import Exchange
from loadgen.stream.reader import Reader


class StreamingEngine(Protocol):
    """What the client needs to know of an engine."""

    @property
    def spec(self) -> EngineSpec: ...

    def decode(self, data: bytes) -> Chunk: ...

    def headers(self) -> Mapping[str, str]: ...


class StreamClient:
    """Keeps one connection and reuses it as long as the server does. Not shared between greenlets.

    A kept connection that the server has closed is replaced before `sent`, silently and outside the
    measured time. There are no retries: a request that fails on a live connection is a result.
    """

    def __init__(
        self, engine: StreamingEngine, reader: Reader | None = None, timeouts: Timeouts | None = None
    ) -> None:
        self._engine = engine
        self._reader = reader or Reader.get()
        self._timeouts = timeouts or Timeouts()
        self._meter = self._reader.meter(engine.spec.name)
        self._endpoint = Endpoint(engine.spec)
        self._decode: Callable[[bytes], Chunk] = engine.decode
        self._idle: Connection | None = None
        self._head = self._fixed_head()
        self._current: Exchange | None = None
        self._opened_before = False  # the current exchange's connection, by `open`

    def send(
        self,
        path: str,
        body: bytes,
        *,
        keep_text: bool = False,
        scheduled_mono_ns: int | None = None,
        asked_output_tokens: int | None = None,
    ) -> Exchange:
        """POST `body` to `path` and read the stream to its end. Raises nothing but the GreenletExit of a
        user who is stopped; the exchange so far is then `cancelled_exchange()`."""
        request = (
            b"POST "
            + self._endpoint.target(path).encode("ascii")
            + self._head
            + b"%d\r\n\r\n" % len(body)
            + body
        )
        while True:
            exchange = self._current = Exchange(self._decode, keep_text)
            exchange.asked_output_tokens = asked_output_tokens
            conn = self._connect(exchange)
            if conn is None:
                return exchange
            self._exchange(conn, request, exchange, scheduled_mono_ns)
            kept = exchange.reused or self._opened_before
            if kept and exchange.status is None and not exchange.bytes and exchange.lost:
                # The server had closed the kept connection before it saw this request: its FIN and our
                # bytes crossed. Not the server's failure, and nothing has been measured yet.
                continue
            return exchange

    def cancelled_exchange(self) -> Exchange | None:
        """The exchange that a stop of the user cut off."""
        return self._current if self._current is not None and self._current.cancelled else None

    @property
    def ready(self) -> bool:
        """Whether a connection is there that is alive as far as is known."""
        return self._idle is not None and self._idle.alive()

    def open(self) -> None:
        """Connect now, so that the next request need not. If it fails, `send` will try again and tell."""
        if self.ready:
            return
        self.close()
        with contextlib.suppress(ConnectError):
            self._idle = Connection(self._endpoint, self._timeouts.connect_s)

    def close(self) -> None:
        if self._idle is not None:
            self._idle.close()
            self._idle = None

    def _connect(self, exchange: Exchange) -> Connection | None:
        conn, self._idle = self._idle, None
        self._opened_before = False
        if conn is not None:
            if conn.alive():
                # One that `open` has made is new to the server: its time is told with its first request.
                exchange.reused = conn.used
                exchange.connect_ns = None if conn.used else conn.connect_ns
                self._opened_before = not conn.used
                conn.used = True
                return conn
            conn.close()
        try:
            conn = Connection(self._endpoint, self._timeouts.connect_s)
        except ConnectError as e:
            exchange.offset_ns = clock.wall_offset_ns()
            exchange.sent_ns = time.time_ns()
            exchange.fail(e.verdict)
            return None
        exchange.connect_ns = conn.connect_ns
        conn.used = True
        return conn

    def _exchange(
        self, conn: Connection, request: bytes, exchange: Exchange, scheduled_mono_ns: int | None
    ) -> None:
        limits = self._timeouts
        reusable = False
        exchange.arm(time.monotonic_ns(), limits.first_token_s, limits.gap_s, limits.total_s)
        self._reader.start(conn, exchange, self._meter)
        try:
            exchange.offset_ns = clock.wall_offset_ns()
            sent = time.monotonic_ns()
            exchange.sent_mono_ns = sent
            exchange.sent_ns = sent + exchange.offset_ns
            if scheduled_mono_ns is not None:
                exchange.send_lag_ns = sent - scheduled_mono_ns
            try:
                conn.send_all(request, time.monotonic() + limits.total_s)
            except TimeoutError:
                text = "the request could not be written in the time allowed"
                exchange.fail(outcome.Verdict(FAILED, outcome.TIMEOUT_TOTAL, text))
            except OSError as e:
                # The server may have answered (413, 400) before it closed: give the reader its turn.
                if not exchange.wake.wait(0.05):
                    exchange.closed(time.time_ns(), e)
            else:
                exchange.wake.wait()
            exchange.finish()
            reusable = exchange.complete and exchange.keep_alive
        except BaseException:
            exchange.cancelled = True
            exchange.fail(outcome.Verdict(FAILED, "cancelled", "the user was stopped"))
            exchange.finish()
            raise
        finally:
            self._reader.stop(conn)
            if reusable:
                self._idle = conn
            else:
                conn.close()

    def _fixed_head(self) -> bytes:
        lines = {
            "Host": self._endpoint.authority,
            "User-Agent": f"loadgen/{__version__}",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            **({} if self._endpoint.tls else self._endpoint.proxy_headers()),
            **self._engine.headers(),
        }
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return b" HTTP/1.1\r\n" + text.encode("latin-1") + b"Content-Length: "
