"""Exchange: one request and what came back, from the first byte of the head to the last of the body.

The reader hands in raw bytes with their kernel time; llhttp (httptools) does the framing at once, since it
alone knows when the response ends; SSE and JSON wait until there is time (`parse`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent.event
import httptools

from loadgen.engines.chunk import Chunk
from loadgen.record import CANCELLED, FAILED, RequestRecord
from loadgen.stream import clock
from loadgen.stream.outcome import MALFORMED, RESET, TRUNCATED, Verdict, judge
from loadgen.stream.timeline import Timeline

_HEAD_LIMIT = 256 * 1024
_BODY_LIMIT = 1024 * 1024  # of a body that is no stream: an error's text
_STREAM_LIMIT = 1024 * 1024 * 1024
SLICE = 64  # pieces parsed in one go: about 0.1 ms on the fast path


class Exchange:
    """State of one request in flight. Times are wall ns until `timeline`, which counts from `sent`.

    The reader calls `received` and `closed`; the client waits on `wake`.
    """

    def __init__(self, decode: Callable[[bytes], Chunk], keep_text: bool = False) -> None:
        self.wake = gevent.event.Event()
        self.timeline = Timeline(decode, keep_text)
        self._parser = httptools.HttpResponseParser(self)
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
        self.complete = False  # the body ended as its framing says
        self.ended = False  # nothing more will come
        self.keep_alive = False
        self.transport_error: Verdict | None = None
        self.bytes = 0
        self.read_lag_ns = 0
        self.stamped = True
        self.clock_step = False
        self.cancelled = False
        self.asked_output_tokens: int | None = None
        self.first_token_deadline_ns = 0  # monotonic, as the next two
        self.total_deadline_ns = 0
        self.check_at_ns = 0  # no time-out can be due before this
        self.gap_ns = 0
        self._pieces: list[tuple[int, int, bytes]] = []
        self._parsed = 0
        self._stamp = 0
        self._floor = 0
        self._head_bytes = 0
        self._informational = False
        self._is_stream = False
        self._framed = False
        self._until_close = False
        self._error_body: list[bytes] = []
        self._error_size = 0

    # --- the reader's side -------------------------------------------------------------------------------

    def received(self, data: bytes, stamp_ns: int, floor_ns: int) -> None:
        """Bytes with the wall time at which the kernel had them; the connection was empty at `floor_ns`."""
        self._stamp = stamp_ns
        self._floor = floor_ns
        self.bytes += len(data)
        if self.headers_ns is None:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.fail(Verdict(FAILED, MALFORMED, "the server answered with a protocol upgrade"))
        except httptools.HttpParserError as e:
            if not self.ended:
                self.fail(Verdict(FAILED, MALFORMED, f"not HTTP: {e}"))
        if self.headers_ns is None and self._head_bytes > _HEAD_LIMIT:
            self.fail(Verdict(FAILED, MALFORMED, f"a response head of more than {_HEAD_LIMIT} bytes"))
        elif self.bytes > _STREAM_LIMIT:
            self.fail(Verdict(FAILED, MALFORMED, f"a response of more than {_STREAM_LIMIT} bytes"))

    def closed(self, stamp_ns: int, error: OSError | None = None) -> None:
        """The connection ended: cleanly (FIN) or with `error`."""
        if self.ended:
            return
        if error is None and self.headers_ns is not None and self._until_close:
            self.complete = True
            self.complete_ns = stamp_ns
            self.ended = True
            return
        if error is not None:
            verdict = Verdict(FAILED, RESET, f"{error.strerror or error} after {self.bytes} bytes")
        elif self.headers_ns is None:
            verdict = Verdict(FAILED, RESET, "the server closed the connection without a response")
        else:
            verdict = Verdict(FAILED, TRUNCATED, "the connection closed in the middle of the body")
        self.fail(verdict)

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

    @property
    def backlog(self) -> int:
        return len(self._pieces) - self._parsed

    # --- llhttp's callbacks ------------------------------------------------------------------------------

    # Bytes after the end of the response are nobody's: they are ignored, and the connection is not kept.

    def on_message_begin(self) -> None:
        if self.complete:
            self.keep_alive = False
        else:
            self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.complete:
            return
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

    def on_body(self, body: bytes) -> None:
        if self.complete:
            return
        if self._is_stream:
            self._pieces.append((self._stamp, self._floor, body))
        elif self._error_size < _BODY_LIMIT:
            self._error_body.append(body)
            self._error_size += len(body)

    def on_message_complete(self) -> None:
        if self._informational or self.complete:
            return
        self.complete = True
        self.complete_ns = self._stamp
        self.ended = True

    # --- parsing, later ----------------------------------------------------------------------------------

    def parse(self, limit: int = SLICE) -> bool:
        """Parse up to `limit` pieces; True when nothing is left. Pieces of one read bear one stamp: all
        but the last of them had waited, so their time is an upper bound."""
        pieces = self._pieces
        feed = self.timeline.feed
        sent = self.sent_ns
        start = self._parsed
        stop = min(len(pieces), start + limit)
        # The last piece of a stream in flight may be followed by others of its read: they are in already,
        # since a read is fed in one go.
        framed = self._framed
        total = len(pieces)
        for i in range(start, stop):
            stamp, floor, body = pieces[i]
            if not framed or (i + 1 < total and pieces[i + 1][0] == stamp):
                feed(body, stamp - sent, max(0, floor - sent), framed=framed)
            else:
                feed(body, stamp - sent)
        self._parsed = stop
        if stop >= 4 * SLICE or stop == total:
            del pieces[:stop]
            self._parsed = 0
        return stop == total

    def finish(self) -> None:
        """Parse what is left and close the timeline; check that the wall clock was not stepped meanwhile."""
        while not self.parse():
            pass
        self.timeline.close((self.complete_ns or self.sent_ns) - self.sent_ns, complete=self.complete)
        drift = clock.wall_offset_ns() - self.offset_ns
        self.clock_step = abs(drift) > clock.STEP_NS

    def arm(self, now_ns: int, first_token_s: float, gap_s: float, total_s: float) -> None:
        """Set the time-outs, from monotonic `now_ns`."""
        self.first_token_deadline_ns = now_ns + int(first_token_s * 1e9)
        self.total_deadline_ns = now_ns + int(total_s * 1e9)
        self.gap_ns = int(gap_s * 1e9)
        self.check_at_ns = min(self.first_token_deadline_ns, self.total_deadline_ns, now_ns + self.gap_ns)

    def waited_too_long(self, now_ns: int) -> str | None:
        """The kind of time-out that is due at monotonic `now_ns`, None if the stream may go on. Pings are
        no sign of life: only events count, so what has come is parsed first."""
        if now_ns >= self.total_deadline_ns:
            return "total"
        self.parse(1 << 30)
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
        usage = t.tally.usage()
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
            output_tokens=usage.output_tokens,
        )

    def fill(self, record: RequestRecord, http_error_text: Callable[[int, bytes], str] | None = None) -> None:
        """Write what this exchange measured into `record`."""
        t = self.timeline
        verdict = self.verdict(http_error_text or _plain_error)
        if self.cancelled:
            record.outcome, record.error, record.error_text = CANCELLED, None, None
        else:
            record.outcome, record.error = verdict.outcome, verdict.error
            record.error_text = verdict.error_text[:2000] if verdict.error_text else None
        record.status = self.status
        record.response_id = t.response_id
        record.finish_reason = t.tally.finish_reason
        record.sent_ns = self.sent_ns
        record.clock = clock.KERNEL if self.stamped else clock.READ
        record.clock_step = self.clock_step
        record.headers_ms = self._ms(self.headers_ns)
        record.complete_ms = self._ms(self.complete_ns)
        record.first_event_ms = _to_ms(t.first_event)
        record.first_event_error_ms = t.first_event_error / 1e6
        record.ttft_ms = _to_ms(t.first_text)
        record.ttft_error_ms = t.first_text_error / 1e6
        record.ttfa_ms = _to_ms(t.first_answer)
        record.ttfa_error_ms = t.first_answer_error / 1e6
        record.e2e_ms = _to_ms(t.last_text)
        record.e2e_error_ms = t.last_text_error / 1e6
        record.connect_ms = _to_ms(self.connect_ns)
        record.connection_reused = self.reused
        record.send_lag_ms = _to_ms(self.send_lag_ns)
        record.read_lag_ms = self.read_lag_ns / 1e6
        record.response_bytes = self.bytes
        record.events = t.events
        record.event_us = [ns // 1000 for ns in t.text_ns]
        record.event_tokens = t.event_tokens
        record.coalesced = t.coalesced.tolist()
        record.coalesced_events = len(t.coalesced)
        record.coalesced_error_ms = max(t.errors_ns, default=0) / 1e6
        self._fill_tokens(record)

    def _fill_tokens(self, record: RequestRecord) -> None:
        t = self.timeline
        usage = t.tally.usage()
        record.asked_output_tokens = self.asked_output_tokens
        record.prompt_tokens = usage.prompt_tokens
        record.cached_tokens = usage.cached_tokens
        record.server_timings = t.tally.timings
        texts = len(t.text_ns)
        if usage.output_tokens is not None:
            record.output_tokens, record.token_source = usage.output_tokens, t.tally.token_source
        elif texts:
            record.output_tokens, record.token_source = texts, "events"
        if record.event_tokens:
            record.first_event_tokens = record.event_tokens[0]
        elif record.output_tokens is not None and record.output_tokens == texts:
            record.first_event_tokens = 1
        record.tpot_ms = tpot_ms(
            record.ttft_ms, record.e2e_ms, record.output_tokens, record.first_event_tokens or 1
        )
        asked = record.asked_output_tokens
        record.short_answer = (
            record.outcome == "ok"
            and asked is not None
            and record.output_tokens is not None
            and record.output_tokens < asked
        )

    def _ms(self, wall_ns: int | None) -> float | None:
        return None if wall_ns is None else (wall_ns - self.sent_ns) / 1e6


def tpot_ms(
    ttft_ms: float | None, e2e_ms: float | None, output_tokens: int | None, first_event_tokens: int = 1
) -> float | None:
    """Time per output token after the first event: (e2e - ttft) / (output_tokens - tokens in the first
    event), in ms; None where that is nothing. With one token an event it is the usual (n - 1)."""
    if ttft_ms is None or e2e_ms is None or output_tokens is None:
        return None
    rest = output_tokens - first_event_tokens
    return (e2e_ms - ttft_ms) / rest if rest > 0 else None


def _to_ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6


def _plain_error(status: int, body: bytes) -> str:
    return body[:500].decode("utf-8", "replace")
