"""Reader: one greenlet reads every stream of the process.

No greenlet switch per token. Because the kernel has stamped what waits, reading need not be prompt: under
load the reader lets segments gather for 1-5 ms after the first readiness and takes all streams in one sweep
of an epoll object. An event that fits its stream's template is taken on the spot: its time is noted, its
bytes, still in the processor's cache, are forgotten. Everything else is put away; framing and parsing get
the time between two sweeps, so that many streams ending at once do not delay the reading of the others.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import collections
import logging
import os
import time
from typing import Any

import gevent
from gevent import get_hub
from gevent.monkey import get_original

from loadgen.record import FAILED
from loadgen.stream import clock, outcome
from loadgen.stream.connection import RECV_BYTES, Connection
from loadgen.stream.exchange import CR, GATHER, SHORT, Exchange
from loadgen.stream.pacing import SweepPacer
from loadgen.stream.read import READ_AT, new_sweep
from loadgen.stream.template import is_plain

log = logging.getLogger("loadgen")

_BUDGET_NS = 1_000_000
_LONGEST_NS = 2_000_000
_SLICE_NS = 200_000  # what parsing a slice takes, and more
_BEATS_S = (0.05, 0.5)  # between two looks at the time-outs: a quarter of the shortest, within these
_QUIET_NS = 250_000_000
_READABLE = 1  # EPOLLIN
# Edge-triggered, and told of the other side's end: a stream is polled once for each arrival, not twice.
_EDGES = _READABLE | 0x2000 | (1 << 31)  # EPOLLRDHUP, EPOLLET
_MAX_READY = 4096
_TIMEOUT_TEXT = {
    "first_token": (outcome.TIMEOUT_FIRST_TOKEN, "no generated text in the time allowed for the first token"),
    "gap": (outcome.TIMEOUT_GAP, "nothing more came in the time allowed between tokens"),
    "total": (outcome.TIMEOUT_TOTAL, "not complete in the time allowed for a whole request"),
}


_NO_PATH: tuple[Any, ...] = (None,) * 6


class Meter:
    """Provisional live figures of one engine: what has come so far, before it is a record."""

    def __init__(self) -> None:
        self.flights: set[_Flight] = set()
        self._ended_events = 0

    @property
    def in_flight(self) -> int:
        return len(self.flights)

    @property
    def events(self) -> int:
        """Raw events since the start of the process."""
        return self._ended_events + sum(f.events for f in self.flights)

    def leave(self, flight: _Flight) -> None:
        self.flights.discard(flight)
        self._ended_events += flight.events


class _Flight:
    """An exchange and the connection it is read from. `fast` is what a sweep needs of one in the middle of
    its stream: (recvmsg, the exchange's reads, self)."""

    __slots__ = ("conn", "exchange", "fast", "meter")

    def __init__(self, conn: Connection, exchange: Exchange, meter: Meter) -> None:
        self.conn = conn
        self.exchange = exchange
        self.meter = meter
        self.fast = (conn.sock.recvmsg, exchange.reads, self, None, *_NO_PATH)

    def look(self) -> None:
        """The exchange has been parsed: how its next events may be taken."""
        plain = self.exchange.plain
        path = _NO_PATH if plain is None else plain.path
        self.fast = (self.conn.sock.recvmsg, self.exchange.reads, self, plain, *path)

    @property
    def events(self) -> int:
        exchange = self.exchange
        return max(exchange.timeline.events, len(exchange.timeline.text_ns)) + len(exchange.reads)


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
        self._streaming: dict[int, tuple[Any, ...]] = {}  # those whose reads may wait
        self._backlog: collections.deque[_Flight] = collections.deque()
        self._pacer = SweepPacer()
        self._polled_ns = time.time_ns()
        self._swept_ns = 0
        self._beat_s = _BEATS_S[1]
        self.next_send_ns = 0  # monotonic: when the next request of an open loop is due, 0 if there is none
        self._sweep_ns = 0  # about what a sweep takes
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
        meter.flights.add(flight)
        self._beat_s = min(self._beat_s, max(_BEATS_S[0], exchange.shortest_timeout_s / 4))
        if self._epoll is not None:
            self._epoll.register(conn.fd, _EDGES)
        else:
            gevent.spawn(self._pump, flight)

    def stop(self, conn: Connection) -> None:
        """Read `conn` no longer; harmless when its exchange has ended by itself."""
        flight = self._flights.pop(conn.fd, None)
        self._streaming.pop(conn.fd, None)
        if flight is not None:
            flight.meter.leave(flight)
            if self._epoll is not None:
                self._epoll.unregister(conn.fd)

    # --- sweeping ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        hub = get_hub()
        watcher = hub.loop.io(self._epoll.fileno(), _READABLE)
        found = 0
        while True:
            delay_ns = self._pacer.delay_ns
            if self._backlog:
                self._stand_back()
                now = time.perf_counter_ns()
                until_ns = max(now + _BUDGET_NS, self._swept_ns + delay_ns)
                if self.next_send_ns:
                    until_ns = min(until_ns, self.next_send_ns - _SLICE_NS)
                self._work(until_ns)
                left_ns = self._swept_ns + delay_ns - time.perf_counter_ns()
                if left_ns > 0:
                    gevent.sleep(left_ns / 1e9)
                else:
                    _breathe()
            else:
                if not (found and delay_ns):  # under load there is no need to wait for the first segment
                    hub.wait(watcher)
                if delay_ns:
                    gevent.sleep(delay_ns / 1e9)
            self._stand_back()
            found = self._sweep()

    def _stand_back(self) -> None:
        """A request is due in a moment: what has come has its time already and can wait until it is sent."""
        if not self.next_send_ns:
            return
        left_ns = self.next_send_ns - time.monotonic_ns()
        if left_ns >= self._sweep_ns:
            return
        if left_ns > 0:
            gevent.sleep(left_ns / 1e9)
        _breathe()  # the dispatcher wakes
        _breathe()  # its request is sent

    def _sweep(self) -> int:
        """Put away what all ready streams have; how many there were."""
        space = clock.CMSG_SPACE
        streaming = self._streaming.get
        floor = self._polled_ns
        sweep = new_sweep(floor)
        self._polled_ns = polled_ns = time.time_ns()
        self._swept_ns = time.perf_counter_ns()
        unpack = clock.TIMESPEC.unpack
        ready = self._epoll.poll(0, _MAX_READY)
        for fd, events in ready:
            fast = streaming(fd)
            if fast is None or events != _READABLE:
                if (flight := self._flights.get(fd)) is not None:
                    self._read(flight, floor)
                continue
            recvmsg, reads, flight, plain, heads, head_of, suffix, tail, append, sent_ns = fast
            try:
                data, ancillary, _, _ = recvmsg(RECV_BYTES, space)
            except BlockingIOError:
                continue
            except OSError as e:
                self._closed(flight, e)
                continue
            size = len(data)
            if not SHORT <= size < RECV_BYTES or not ancillary:
                self._put_away(flight, data, clock.stamp_of(ancillary), floor)
                continue
            if plain is not None and not reads:
                # Nothing waits, so this may be taken on the spot. See Timeline.take_plain for the conditions.
                head = heads.get(size) or head_of(size)
                start, end = len(head), size - tail
                if (
                    start < end
                    and data.startswith(head)
                    and data.endswith(suffix)
                    and is_plain(data, start, end)
                ):
                    seconds, nanos = unpack(ancillary[0][2])
                    at_ns = seconds * 1_000_000_000 + nanos
                    append(at_ns - sent_ns)
                    plain.size += size
                    if polled_ns - at_ns > plain.lag_ns:
                        plain.lag_ns = polled_ns - at_ns
                    continue
            reads.append((ancillary[0][2], sweep, data))
            if data[-4] == CR or len(reads) >= GATHER:  # what `Exchange.is_due` says, without the call
                self._queue(flight)
        sweep[READ_AT] = time.time_ns()
        took_ns = time.perf_counter_ns() - self._swept_ns
        self._sweep_ns = min(max(took_ns, self._sweep_ns * 7 // 8), _LONGEST_NS)
        self._pacer.swept(self._swept_ns, len(ready))
        return len(ready)

    def _put_away(self, flight: _Flight, data: bytes, stamp: bytes, floor: int) -> None:
        """A read that is not like most: full, tiny, the end, or without the kernel's time."""
        exchange = flight.exchange
        if not data:
            self._closed(flight, None)
            return
        read_ns = time.time_ns()
        if not stamp:
            stamp = clock.to_stamp(read_ns)
            exchange.stamped = False
        exchange.reads.append((stamp, new_sweep(floor, read_ns), data))
        if len(data) == RECV_BYTES:
            exchange.overfull.add(stamp)
            # What is left may have come before the poll, but after this.
            self._read(flight, clock.from_stamp(stamp))
        else:
            self._queue(flight)

    def _read(self, flight: _Flight, floor: int) -> None:
        """The general way to read a connection (TLS, full buffers, its end, no epoll): until it is empty."""
        exchange = flight.exchange
        while True:
            try:
                data, stamp, full, end = flight.conn.recv()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as e:
                self._closed(flight, e)
                return
            if data:
                read_ns = time.time_ns()
                if not stamp:
                    stamp = clock.to_stamp(read_ns)
                    exchange.stamped = False
                exchange.reads.append((stamp, new_sweep(floor, read_ns), data))
                if full:
                    exchange.overfull.add(stamp)
                floor = clock.from_stamp(stamp)
            if end:
                self._closed(flight, None)
                return
        self._queue(flight)

    def _closed(self, flight: _Flight, error: OSError | None) -> None:
        flight.exchange.closed(time.time_ns(), error)
        self.stop(flight.conn)  # a closed connection is readable for ever
        self._queue(flight)

    def _queue(self, flight: _Flight) -> None:
        if not flight.exchange.queued:
            flight.exchange.queued = True
            self._backlog.append(flight)

    # --- parsing, on a budget ----------------------------------------------------------------------------

    def _work(self, deadline_ns: int) -> None:
        backlog = self._backlog
        while backlog:
            if self._parse(backlog[0]):
                backlog.popleft().exchange.queued = False
            if time.perf_counter_ns() >= deadline_ns:
                break

    def _parse(self, flight: _Flight) -> bool:
        """Parse a slice; True when nothing is left. Wakes the user of an exchange that has ended."""
        exchange = flight.exchange
        before = len(exchange.timeline.text_ns)
        try:
            if not exchange.parse():
                return False
        except Exception as e:  # a mistake of ours must not end the reading of all other streams
            log.exception("a response could not be parsed")
            exchange.fail(outcome.Verdict(FAILED, outcome.MALFORMED, f"not understood: {e!r}"))
        self._pacer.saw_gaps(exchange.timeline.text_ns, before)
        self._look(flight)
        if exchange.ended and not exchange.wake.is_set():
            self.stop(flight.conn)
            exchange.wake.set()
            _breathe()  # its user writes the record before the next one wakes, and a request that is due goes
        return True

    def _look(self, flight: _Flight) -> None:
        """An exchange has been parsed: see how its next reads may be taken."""
        if flight.exchange.lazy and flight.conn.plain and flight.conn.fd in self._flights:
            flight.look()
            self._streaming[flight.conn.fd] = flight.fast

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
                self._work(time.perf_counter_ns() + _BUDGET_NS)
        finally:
            watcher.close()
            while not self._parse(flight):
                gevent.sleep(0)

    # --- time-outs ---------------------------------------------------------------------------------------

    def _watch_deadlines(self) -> None:
        while True:
            gevent.sleep(self._beat_s)
            now = time.monotonic_ns()
            quiet_since = time.time_ns() - _QUIET_NS
            for flight in list(self._flights.values()):
                exchange = flight.exchange
                times = exchange.timeline.text_ns
                self._pacer.saw_gaps(times, max(0, len(times) - 32))
                if now >= exchange.check_at_ns:
                    kind = exchange.waited_too_long(now)
                    if kind is not None:
                        exchange.fail(outcome.Verdict(FAILED, *_TIMEOUT_TEXT[kind]))
                elif exchange.reads and exchange.reads[-1][1][READ_AT] < quiet_since:
                    exchange.parse()  # the end of an answer that did not look like one
                if exchange.ended:
                    self.stop(flight.conn)
                    exchange.wake.set()
                else:
                    self._look(flight)


def _breathe() -> None:
    """Let others run, timers and sockets among them: gevent.sleep(0) is back before those, as long as there
    are greenlets that are ready, up to 50 of them. (A request that was due went 15 ms late behind the ends of
    streams.)"""
    hub = get_hub()
    timer = hub.loop.timer(0.0)
    try:
        hub.wait(timer)
    finally:
        timer.close()


def _make_epoll() -> Any:
    try:
        # gevent hides epoll, since waiting on it would stop all greenlets; here it is only ever polled.
        return get_original("select", "epoll")()
    except AttributeError:
        return None
