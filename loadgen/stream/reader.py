"""Reader: one greenlet reads every stream of the process.

No greenlet switch per token. Because the kernel has stamped what waits, reading need not be prompt: under
load the reader lets segments gather for 1-3 ms after the first readiness and takes all streams in one sweep
of an epoll object. Parsing waits until a stream has ended (or a slice has gathered) and gets about 1 ms
between two sweeps, so that many streams ending at once do not delay the reading of the others.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import collections
import os
import time
from typing import Any

import gevent
from gevent import get_hub
from gevent.monkey import get_original

from loadgen.record import FAILED
from loadgen.stream import clock, outcome
from loadgen.stream.connection import RECV_BYTES, Connection
from loadgen.stream.exchange import SLICE, Exchange
from loadgen.stream.pacing import SweepPacer

_BUDGET_NS = 1_000_000
_DEADLINE_BEAT_S = 0.05
_READABLE = 1
_MAX_READY = 4096
_TIMEOUT_TEXT = {
    "first_token": (outcome.TIMEOUT_FIRST_TOKEN, "no generated text in the time allowed for the first token"),
    "gap": (outcome.TIMEOUT_GAP, "nothing more came in the time allowed between tokens"),
    "total": (outcome.TIMEOUT_TOTAL, "not complete in the time allowed for a whole request"),
}


class Meter:
    """Provisional live figures of one engine: what has been read, before it is parsed."""

    __slots__ = ("events", "in_flight")

    def __init__(self) -> None:
        self.events = 0
        self.in_flight = 0


class _Flight:
    __slots__ = ("conn", "exchange", "meter", "queued", "recvmsg")

    def __init__(self, conn: Connection, exchange: Exchange, meter: Meter) -> None:
        self.conn = conn
        self.exchange = exchange
        self.meter = meter
        self.queued = False
        self.recvmsg = conn.sock.recvmsg if conn.plain else None


class Reader:
    """Reads all exchanges between `start` and their end; wakes each exchange's waiter when it is parsed."""

    _instance: tuple[int, Reader] | None = None

    @classmethod
    def get(cls) -> Reader:
        """The reader of this process (a fork gets its own)."""
        if cls._instance is None or cls._instance[0] != os.getpid():
            cls._instance = (os.getpid(), cls())
        return cls._instance[1]

    def __init__(self) -> None:
        self.live: dict[str, Meter] = {}
        self._flights: dict[int, _Flight] = {}
        self._backlog: collections.deque[_Flight] = collections.deque()
        self._pacer = SweepPacer()
        self._polled_ns = time.time_ns()
        # Held open so that the kernel goes on stamping: it starts doing so some time after the first request.
        self._witness = get_original("socket", "socket")()
        self.stamps = clock.enable_stamps(self._witness)
        self._epoll: Any = _make_epoll() if self.stamps else None
        if self._epoll is not None:
            gevent.spawn(self._run)
        gevent.spawn(self._watch_deadlines)

    def meter(self, engine: str) -> Meter:
        return self.live.setdefault(engine, Meter())

    def start(self, conn: Connection, exchange: Exchange, meter: Meter) -> None:
        """Read `conn` into `exchange` from now on. Call it before the request is sent."""
        flight = _Flight(conn, exchange, meter)
        self._flights[conn.fd] = flight
        meter.in_flight += 1
        if self._epoll is not None:
            self._epoll.register(conn.fd, _READABLE)
        else:
            gevent.spawn(self._pump, flight)

    def stop(self, conn: Connection) -> None:
        """Read `conn` no longer; harmless when its exchange has ended by itself."""
        flight = self._flights.pop(conn.fd, None)
        if flight is not None:
            flight.meter.in_flight -= 1
            if self._epoll is not None:
                self._epoll.unregister(conn.fd)

    # --- sweeping ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        hub = get_hub()
        watcher = hub.loop.io(self._epoll.fileno(), _READABLE)
        while True:
            if self._backlog:
                self._work()
                gevent.sleep(0)
            else:
                hub.wait(watcher)
                if delay := self._pacer.delay_s:
                    gevent.sleep(delay)
            self._sweep()

    def _sweep(self) -> None:
        now = time.time_ns
        unpack = clock.TIMESPEC.unpack_from
        space = clock.CMSG_SPACE
        flights = self._flights
        floor = self._polled_ns
        self._polled_ns = now()
        ready = self._epoll.poll(0, _MAX_READY)
        for fd, _ in ready:
            flight = flights.get(fd)
            if flight is None:
                continue
            if flight.recvmsg is None:
                self._read(flight, floor)
                continue
            exchange = flight.exchange
            try:
                data, ancillary, _, _ = flight.recvmsg(RECV_BYTES, space)
            except BlockingIOError:
                continue
            except OSError as e:
                self._closed(flight, e)
                continue
            read_at = now()
            if not data:
                self._closed(flight, None)
                continue
            if ancillary:
                seconds, nanos = unpack(ancillary[0][2])
                stamp = seconds * 1_000_000_000 + nanos
                if read_at - stamp > exchange.read_lag_ns:
                    exchange.read_lag_ns = read_at - stamp
            else:
                stamp = read_at
                exchange.stamped = False
            flight.meter.events += 1
            exchange.received(data, stamp, floor)
            if len(data) == RECV_BYTES and not exchange.ended:
                self._read(flight, stamp)  # what is left may have come before the poll: after this stamp
            if exchange.ended:
                self._ended(flight)
            elif exchange.backlog >= SLICE and not flight.queued:
                flight.queued = True
                self._backlog.append(flight)
        self._pacer.swept(self._polled_ns, len(ready))

    def _read(self, flight: _Flight, floor: int) -> None:
        """The general way to read a connection (TLS, full buffers, no epoll): until it is empty."""
        exchange = flight.exchange
        while not exchange.ended:
            try:
                pieces, stamp, end = flight.conn.recv()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as e:
                self._closed(flight, e)
                return
            read_at = time.time_ns()
            if stamp:
                exchange.read_lag_ns = max(exchange.read_lag_ns, read_at - stamp)
            else:
                stamp = read_at
                exchange.stamped = False
            for piece in pieces:
                flight.meter.events += 1
                exchange.received(piece, stamp, floor)
            if end:
                self._closed(flight, None)
                return
            floor = stamp
        self._ended(flight)

    def _closed(self, flight: _Flight, error: OSError | None) -> None:
        flight.exchange.closed(time.time_ns(), error)
        self._ended(flight)

    def _ended(self, flight: _Flight) -> None:
        self.stop(flight.conn)
        if self._epoll is None:
            flight.exchange.wake.set()
        elif not flight.queued:
            flight.queued = True
            self._backlog.append(flight)

    # --- parsing, on a budget ----------------------------------------------------------------------------

    def _work(self) -> None:
        backlog = self._backlog
        deadline = time.perf_counter_ns() + _BUDGET_NS
        while backlog and time.perf_counter_ns() < deadline:
            flight = backlog[0]
            exchange = flight.exchange
            before = len(exchange.timeline.text_ns)
            if not exchange.parse():
                continue
            backlog.popleft()
            flight.queued = False
            self._pacer.saw_gaps(exchange.timeline.text_ns, before)
            if exchange.ended:
                exchange.wake.set()
                gevent.sleep(0)  # its user writes the record before the next one wakes

    # --- without epoll or stamps -------------------------------------------------------------------------

    def _pump(self, flight: _Flight) -> None:
        """A greenlet a stream, reading at once: there is no stamp to make up for a late read."""
        hub = get_hub()
        watcher = hub.loop.io(flight.conn.fd, _READABLE)
        try:
            while self._flights.get(flight.conn.fd) is flight:
                floor = time.time_ns()
                hub.wait(watcher)
                if self._flights.get(flight.conn.fd) is not flight:
                    return
                self._read(flight, floor)
                if flight.exchange.backlog >= SLICE:
                    flight.exchange.parse()
        finally:
            watcher.close()

    # --- time-outs ---------------------------------------------------------------------------------------

    def _watch_deadlines(self) -> None:
        while True:
            gevent.sleep(_DEADLINE_BEAT_S)
            now = time.monotonic_ns()
            late = [f for f in self._flights.values() if now >= f.exchange.check_at_ns]
            for flight in late:
                exchange = flight.exchange
                if exchange.ended:
                    continue
                kind = exchange.waited_too_long(now)
                if kind is not None:
                    exchange.fail(outcome.Verdict(FAILED, *_TIMEOUT_TEXT[kind]))
                    self.stop(flight.conn)
                    exchange.wake.set()


def _make_epoll() -> Any:
    try:
        # gevent hides epoll, since waiting on it would stop all greenlets; here it is only ever polled.
        return get_original("select", "epoll")()
    except AttributeError:
        return None
