"""Exchange: one request and what came back, from the first byte of the head to the last of the body.

The reader notes the time of events that fit the stream's template (`plain`) and puts away all others in
`reads`. Framing (llhttp, through httptools), SSE and JSON wait until there is time (`parse`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent.event
import httptools

from loadgen.engines.chunk import Chunk
from loadgen.record import FAILED, RequestRecord
from loadgen.stream import clock
from loadgen.stream.fill import fill_record
from loadgen.stream.outcome import MALFORMED, RESET, TRUNCATED, Verdict, judge
from loadgen.stream.read import FLOOR, READ_AT, Read, Sweep, new_sweep
from loadgen.stream.timeline import PlainPath, Timeline

_HEAD_LIMIT = 256 * 1024
_BODY_LIMIT = 1024 * 1024  # of a body that is no stream: an error's text
_STREAM_LIMIT = 1024 * 1024 * 1024
SLICE = 128  # reads parsed in one go: about 0.1 ms on the fast path
GATHER = 8  # reads that may wait: as long as one does, the stream's events are not taken on the spot
SHORT = 8
CR = 13


class Exchange:
    """State of one request in flight. Times are wall ns until `timeline`, which counts from `sent`.

    The reader appends to `reads`, calls `parse` when `is_due` says so, and sets `wake` once the exchange has
    `ended`; the client waits on `wake`.
    """

    def __init__(self, decode: Callable[[bytes], Chunk], keep_text: bool = False) -> None:
        self.reads: list[Read] = []
        self.lazy = False  # within a chunked event stream: reads may wait
        self.queued = False
        self.plain: PlainPath | None = None  # while nothing waits: events may be taken on the spot
        self.read_lag_ns = 0
        self.stamped = True
        self.overfull: set[bytes] = set()  # stamps of reads that filled the buffer: they may be later bytes'
        self.eof: tuple[int, OSError | None] | None = None  # the connection ended, after all reads
        self.wake = gevent.event.Event()
        self.timeline = Timeline(decode, keep_text)
        self.headers: dict[str, str] = {}
        self.status: int | None = None
        self.sent_ns = 0  # wall
        self.sent_mono_ns = 0
        self.offset_ns = 0
        self.headers_ns: int | None = None
        self.complete_ns: int | None = None
        self.send_lag_ns: int | None = None
        self.connect_ns: int | None = None
        self.reused = False
        self.replica: int | None = None
        self.complete = False  # the body ended as its framing says
        self.ended = False  # nothing more will come
        self.keep_alive = False
        self.transport_error: Verdict | None = None
        self.bytes = 0
        self.clock_step = False
        self.cancelled = False
        self.asked_output_tokens: int | None = None
        self.first_token_deadline_ns = 0  # monotonic, as the next two
        self.total_deadline_ns = 0
        self.check_at_ns = 0  # no time-out can be due before this
        self.gap_ns = 0
        self.shortest_timeout_s = float("inf")
        self._parser = httptools.HttpResponseParser(self)
        self._stamp = 0
        self._informational = False
        self._is_stream = False
        self._framed = False
        self._in_chunk = False
        self._at_boundary = False  # llhttp expects a chunk's size next
        self._until_close = False
        self._bodies: list[bytes] = []
        self._error_body: list[bytes] = []
        self._error_size = 0

    # --- the reader's side -------------------------------------------------------------------------------

    def is_due(self, data: bytes) -> bool:
        """Must be parsed now that `data` has come: it may be the end, or many reads have gathered.

        A chunked body ends in two CRLFs; within an event stream a read that does (or nearly so) is rare, as
        are tiny ones (the rest of an end that was split).
        """
        return not self.lazy or len(self.reads) >= GATHER or len(data) < SHORT or data[-4] == CR

    def received(self, data: bytes, stamp_ns: int, floor_ns: int, read_ns: int | None = None) -> None:
        """Bytes with the wall time at which the kernel had them; the connection was empty at `floor_ns`."""
        read_ns = stamp_ns if read_ns is None else read_ns
        self.reads.append((clock.to_stamp(stamp_ns), new_sweep(floor_ns, read_ns), data))

    def closed(self, stamp_ns: int, error: OSError | None = None) -> None:
        """The connection ended: cleanly (FIN) or with `error`. Takes effect when all reads are parsed."""
        if self.eof is None:
            self.eof = (stamp_ns, error)

    def fail(self, verdict: Verdict) -> None:
        """End the exchange for a reason of the transport's; the first reason counts."""
        if not self.ended:
            self.transport_error = verdict
            self.ended = True
            self.complete_ns = time.time_ns()

    @property
    def lost(self) -> bool:
        """The connection went away (as opposed to a time-out or nonsense)."""
        return self.transport_error is not None and self.transport_error.error == RESET

    # --- parsing, later ----------------------------------------------------------------------------------

    def parse(self, limit: int = SLICE) -> bool:
        """Parse up to `limit` reads; True when nothing is left."""
        if self.plain is not None:
            self._note_plain(self.plain)
        reads = self.reads
        stop = min(len(reads), limit)
        i = 0
        while i < stop and not self.ended:
            if self._at_boundary:
                count, size, lag = self.timeline.take_plain(reads[i:stop], self.sent_ns)
                if count:
                    self.bytes += size
                    self.read_lag_ns = max(self.read_lag_ns, lag)
                    i += count
                    continue
            self._frame(*reads[i])
            i += 1
        if self.ended:
            reads.clear()
        else:
            del reads[:stop]
        if reads:
            return False
        self.plain = self.timeline.plain_path(self.sent_ns) if self._at_boundary and self.lazy else None
        if self.eof is not None:
            self._end_of_connection(*self.eof)
        return True

    def _note_plain(self, plain: PlainPath) -> None:
        self.timeline.took(plain)
        self.bytes += plain.size
        plain.size = 0
        self.read_lag_ns = max(self.read_lag_ns, plain.lag_ns)

    def _frame(self, stamp: bytes, sweep: Sweep, data: bytes) -> None:
        self._stamp = stamp_ns = clock.from_stamp(stamp)
        self.read_lag_ns = max(self.read_lag_ns, sweep[READ_AT] - stamp_ns)
        self.bytes += len(data)
        bodies = self._bodies
        bodies.clear()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.fail(Verdict(FAILED, MALFORMED, "the server answered with a protocol upgrade"))
        except httptools.HttpParserError as e:
            self.fail(Verdict(FAILED, MALFORMED, f"not HTTP: {e}"))
        if self._is_stream:
            # Chunks of one read had waited together, and the kernel tells the time of the last one only.
            at, floor = stamp_ns - self.sent_ns, max(0, sweep[FLOOR] - self.sent_ns)
            framed = self._framed
            exact = len(bodies) - 1 if framed and stamp not in self.overfull else -1
            for i, body in enumerate(bodies):
                self.timeline.feed(body, at, None if i == exact else floor, framed=framed)
            # A size line that is not complete never ends in CRLF.
            self._at_boundary = framed and not self._in_chunk and data.endswith(b"\r\n")
        if self.headers_ns is None and self.bytes > _HEAD_LIMIT:
            self.fail(Verdict(FAILED, MALFORMED, f"a response head of more than {_HEAD_LIMIT} bytes"))
        elif self.bytes > _STREAM_LIMIT:
            self.fail(Verdict(FAILED, MALFORMED, f"a response of more than {_STREAM_LIMIT} bytes"))
        self.lazy = self._is_stream and self._framed and not self.ended

    def _end_of_connection(self, stamp_ns: int, error: OSError | None) -> None:
        if self.ended:
            return
        if error is None and self.headers_ns is not None and self._until_close:
            self.complete = self.ended = True
            self.complete_ns = stamp_ns
        elif error is not None:
            text = f"{error.strerror or error} after {self.bytes} bytes"
            self.fail(Verdict(FAILED, RESET, text))
        elif self.headers_ns is None:
            self.fail(Verdict(FAILED, RESET, "the server closed the connection without a response"))
        else:
            self.fail(Verdict(FAILED, TRUNCATED, "the connection closed in the middle of the body"))

    def finish(self) -> None:
        """Parse what is left and close the timeline; check that the wall clock was not stepped meanwhile."""
        while not self.parse():
            pass
        self.timeline.close((self.complete_ns or self.sent_ns) - self.sent_ns, complete=self.complete)
        drift = clock.wall_offset_ns() - self.offset_ns
        self.clock_step = abs(drift) > clock.STEP_NS

    # --- llhttp's callbacks ------------------------------------------------------------------------------
    # Bytes after the end of the response are nobody's: they are ignored, and the connection is not kept.

    def on_message_begin(self) -> None:
        if self.complete:
            self.keep_alive = False
        else:
            self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.complete:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        status = self._parser.get_status_code()
        self._informational = 100 <= status < 200
        if self._informational:
            return
        self.status = status
        self.headers_ns = self._stamp
        self.keep_alive = self._parser.should_keep_alive()
        coded = self.headers.get("transfer-encoding", "").lower()
        self._framed = coded.endswith("chunked")
        self._until_close = not self._framed and "content-length" not in self.headers
        kind = self.headers.get("content-type", "").lower()
        encoding = self.headers.get("content-encoding", "").lower()
        self._is_stream = (
            status == 200 and kind.startswith("text/event-stream") and encoding in ("", "identity")
        )

    def on_chunk_header(self) -> None:
        self._in_chunk = True

    def on_chunk_complete(self) -> None:
        self._in_chunk = False

    def on_body(self, body: bytes) -> None:
        if self.complete:
            return
        if self._is_stream:
            self._bodies.append(body)
        elif self._error_size < _BODY_LIMIT:
            self._error_body.append(body)
            self._error_size += len(body)

    def on_message_complete(self) -> None:
        if self._informational or self.complete:
            return
        self.complete = self.ended = True
        self.complete_ns = self._stamp

    # --- time-outs ---------------------------------------------------------------------------------------

    def arm(self, now_ns: int, first_token_s: float, gap_s: float, total_s: float) -> None:
        """Set the time-outs, from monotonic `now_ns`."""
        self.first_token_deadline_ns = now_ns + int(first_token_s * 1e9)
        self.total_deadline_ns = now_ns + int(total_s * 1e9)
        self.gap_ns = int(gap_s * 1e9)
        self.shortest_timeout_s = min(first_token_s, gap_s, total_s)
        self.check_at_ns = min(self.first_token_deadline_ns, self.total_deadline_ns, now_ns + self.gap_ns)

    def waited_too_long(self, now_ns: int) -> str | None:
        """The kind of time-out that is due at monotonic `now_ns`, None if the stream may go on. Pings are
        no sign of life: only events count, so what has come is parsed first."""
        self.parse(1 << 30)
        if self.ended:
            return None
        if now_ns >= self.total_deadline_ns:
            return "total"
        t = self.timeline
        if not t.text_ns:
            due, kind = self.first_token_deadline_ns, "first_token"
        else:
            due, kind = self.sent_mono_ns + (t.last_event or 0) + self.gap_ns, "gap"
        if now_ns >= due:
            return kind
        self.check_at_ns = min(due, self.total_deadline_ns)
        return None

    # --- the result --------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        return self.timeline.text

    @property
    def error_body(self) -> bytes:
        return b"".join(self._error_body)

    def verdict(self, http_error_text: Callable[[int, bytes], str]) -> Verdict:
        t = self.timeline
        body = self.error_body
        said = http_error_text(self.status, body) if self.status is not None and body else ""
        return judge(
            status=self.status,
            content_type=self.headers.get("content-type", ""),
            content_encoding=self.headers.get("content-encoding", "").lower(),
            complete=self.complete,
            transport_error=self.transport_error,
            http_error_text=said,
            stream_error=t.error,
            malformed=t.malformed,
            finished=t.finished,
            text_events=len(t.text_ns),
            output_tokens=t.tally.usage().output_tokens,
        )

    def fill(self, record: RequestRecord, http_error_text: Callable[[int, bytes], str] | None = None) -> None:
        """Write what this exchange measured into `record`."""
        fill_record(record, self, self.verdict(http_error_text or _plain_error))


def _plain_error(_status: int, body: bytes) -> str:
    return body[:500].decode("utf-8", "replace")
