"""The template, the pacer, the clock and the verdict, each alone."""

from __future__ import annotations

import pytest

from loadgen.engines.decode import decode_chunk
from loadgen.record import FAILED, OK
from loadgen.stream import clock
from loadgen.stream.fill import tpot_ms
from loadgen.stream.outcome import Verdict, judge
from loadgen.stream.pacing import SweepPacer
from loadgen.stream.template import learn

DATA = b'{"id":"c","choices":[{"index":0,"delta":{"content":" the"},"finish_reason":null}]}'
SEGMENT = b"data: " + DATA + b"\n\n"


def template_of(data: bytes):  # type: ignore[no-untyped-def]
    return learn(b"data: " + data + b"\n\n", data, decode_chunk(data), decode_chunk)


def test_a_template_takes_any_plain_text_in_the_texts_place() -> None:
    template = template_of(DATA)
    assert template.match(SEGMENT) == b" the"
    assert template.match(SEGMENT.replace(b" the", b"")) == b""
    assert template.match(SEGMENT.replace(b" the", b" {}:,[] 'x'")) == b" {}:,[] 'x'"


@pytest.mark.parametrize(
    "other",
    [
        SEGMENT.replace(b" the", b'\\"'),
        SEGMENT.replace(b" the", b'","x":"'),
        SEGMENT.replace(b" the", b"\\n"),
        SEGMENT.replace(b" the", b"\n"),
        SEGMENT.replace(b" the", "é".encode()),
        SEGMENT.replace(b" the", b"\x7f"),
        SEGMENT.replace(b"null", b'"length"'),
        SEGMENT.replace(b'"c"', b'"d"'),
        SEGMENT[:-1],
        SEGMENT + SEGMENT,
        SEGMENT[1:],
        b"",
    ],
)
def test_a_template_leaves_everything_else_to_the_parser(other: bytes) -> None:
    assert template_of(DATA).match(other) is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"choices":[{"delta":{"content":""}}]}',
        b'{"choices":[{"delta":{"content":"\\n"}}]}',
        '{"choices":[{"delta":{"content":"é"}}]}'.encode(),
        b'{"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}',
        b'{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":1}}',
        b'{"choices":[{"delta":{"content":"a"}}],"timings":{"predicted_n":1}}',
        b'{"choices":[{"delta":{"content":"a"},"token_ids":[1]}]}',
        b'{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"a"}}]}}]}',
        b'{"error":{"message":"a"}}',
    ],
)
def test_no_template_from_an_event_that_says_more_than_plain_text(data: bytes) -> None:
    assert template_of(data) is None


def test_a_decoy_with_the_same_text_is_not_taken_for_the_text() -> None:
    data = b'{"model":"a","choices":[{"delta":{"note":"a","content":"a"}}],"tail":"a"}'
    template = template_of(data)
    assert template.match(b"data: " + data.replace(b'"content":"a"', b'"content":"b"') + b"\n\n") == b"b"
    assert template.match(b"data: " + data.replace(b'"model":"a"', b'"model":"b"') + b"\n\n") is None


# --- the pacer -------------------------------------------------------------------------------------------

MS = 1_000_000


def pace(reads_per_sweep: int, sweep_ms: float, gap_ms: float, sweeps: int = 200) -> float:
    pacer = SweepPacer()
    for i in range(sweeps):
        pacer.saw_gaps([round(k * gap_ms * MS) for k in range(20)], 0)
        pacer.swept(round(i * sweep_ms * MS), reads_per_sweep)
    return pacer.delay_ns / 1e9


@pytest.mark.parametrize(
    ("reads", "sweep_ms", "gap_ms", "delay_s"),
    [
        (1, 20, 20, 0.0),  # one stream of 50 tokens/s: read at once
        (1, 1, 20, 0.0),  # 1,000 events/s: at once
        (30, 3, 20, 0.005),  # 10,000/s: the longest wait
        (30, 3, 8, 0.002),  # a quarter of the gap
        (30, 3, 1, 0.0),  # events so close that any wait would merge them
    ],
)
def test_delay_by_rate_and_gap(reads: int, sweep_ms: float, gap_ms: float, delay_s: float) -> None:
    assert pace(reads, sweep_ms, gap_ms) == pytest.approx(delay_s, rel=0.01)


def test_delay_ends_with_the_load() -> None:
    pacer = SweepPacer()
    for i in range(100):
        pacer.saw_gaps([k * 20 * MS for k in range(20)], 0)
        pacer.swept(i * 3 * MS, 30)
    assert pacer.delay_ns > 0
    for i in range(20):
        pacer.swept(300 * MS + i * 20 * MS, 1)
    assert pacer.delay_ns == 0


# --- the clock -------------------------------------------------------------------------------------------


def test_the_offset_turns_monotonic_into_wall_time() -> None:
    import time

    before = time.time_ns()
    here = time.monotonic_ns() + clock.wall_offset_ns()
    after = time.time_ns()
    assert before - 100_000 <= here <= after + 100_000


def test_a_stamp_is_found_among_ancillary_data() -> None:
    import socket

    data = clock.TIMESPEC.pack(1_796_060_428, 123_456_789)
    rows = [(socket.SOL_SOCKET, 1, b"x" * 16), (socket.SOL_SOCKET, clock.SO_TIMESTAMPNS, data)]
    assert clock.stamp_of(rows) == data
    assert clock.from_stamp(data) == 1_796_060_428_123_456_789
    assert clock.to_stamp(1_796_060_428_123_456_789) == data
    assert clock.times_ns([data, data]).tolist() == [1_796_060_428_123_456_789] * 2
    assert clock.stamp_of([]) == b""
    assert clock.stamp_of([(socket.SOL_SOCKET, clock.SO_TIMESTAMPNS, b"short")]) == b""


# --- time per output token -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttft", "e2e", "tokens", "first", "expected"),
    [
        (100.0, 400.0, 4, 1, 100.0),  # three gaps of 100 ms
        (100.0, 400.0, 5, 2, 100.0),  # the first event held two of five tokens
        (100.0, 100.0, 1, 1, None),
        (100.0, 400.0, 3, 3, None),
        (None, None, 4, 1, None),
        (100.0, 400.0, None, 1, None),
    ],
)
def test_tpot(
    ttft: float | None, e2e: float | None, tokens: int | None, first: int, expected: float | None
) -> None:
    assert tpot_ms(ttft, e2e, tokens, first) == expected


# --- the verdict -----------------------------------------------------------------------------------------

TIMEOUT = Verdict(FAILED, "timeout_gap", "too long")


@pytest.mark.parametrize(
    ("changed", "outcome", "error"),
    [
        ({}, OK, None),
        ({"complete": False}, OK, None),
        ({"transport_error": TIMEOUT}, OK, None),  # the server had said that it was through
        ({"finished": False, "transport_error": TIMEOUT}, FAILED, "timeout_gap"),
        ({"finished": False}, FAILED, "truncated"),
        ({"stream_error": "boom"}, FAILED, "in_stream"),
        ({"stream_error": "boom", "transport_error": TIMEOUT}, FAILED, "in_stream"),
        ({"malformed": "x"}, FAILED, "malformed"),
        ({"malformed": "x", "complete": False}, FAILED, "truncated"),
        ({"text_events": 0, "output_tokens": None}, FAILED, "no_text"),
        ({"text_events": 0, "output_tokens": 1}, OK, None),  # one token, the end itself
        ({"status": 503}, FAILED, "http_503"),
        ({"status": None, "transport_error": TIMEOUT}, FAILED, "timeout_gap"),
        ({"content_type": "text/event-stream;charset=utf-8"}, OK, None),
        ({"content_type": "TEXT/EVENT-STREAM"}, OK, None),
        ({"content_type": "text/event-streams"}, FAILED, "not_a_stream"),
        ({"content_encoding": "br"}, FAILED, "compressed"),
    ],
)
def test_verdict(changed: dict[str, object], outcome: str, error: str | None) -> None:
    facts: dict[str, object] = {
        "status": 200,
        "content_type": "text/event-stream",
        "content_encoding": "",
        "complete": True,
        "transport_error": None,
        "http_error_text": "",
        "stream_error": None,
        "malformed": None,
        "finished": True,
        "text_events": 3,
        "output_tokens": 3,
        **changed,
    }
    verdict = judge(**facts)  # type: ignore[arg-type]
    assert (verdict.outcome, verdict.error) == (outcome, error)
