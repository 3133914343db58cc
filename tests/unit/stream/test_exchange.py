"""The exchange: however the bytes are cut into reads and whatever may wait, the same result."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.engines.decode import decode_chunk
from loadgen.record import RequestRecord
from loadgen.stream import clock
from loadgen.stream.exchange import SLICE, Exchange
from tests.support.wire import DONE, END, FINISH, HEAD, TOKEN, usage
from tests.unit.stream.test_timeline import KINDS, MS, STYLES, TEXT, build

SENT = 1_796_060_428_000_000_000


def chunk(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


def exchange_of(reads: list[bytes], *, at_once: bool = False) -> Exchange:
    """Read number i came at i ms. Reads wait as the reader lets them; `at_once`: none waits."""
    exchange = Exchange(decode_chunk, keep_text=True)
    exchange.sent_ns = SENT
    for i, data in enumerate(reads):
        exchange.received(data, SENT + i * MS, SENT + i * MS - 1)
        if at_once or exchange.is_due(data):
            while not exchange.parse():
                pass
    return exchange


def record_of(exchange: Exchange) -> RequestRecord:
    exchange.finish()
    record = RequestRecord()
    exchange.fill(record)
    return record


PARTS = st.lists(st.tuples(st.sampled_from(KINDS), TEXT), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(PARTS, st.sampled_from(STYLES), st.booleans(), st.data())
def test_any_cut_of_the_wire_gives_what_was_sent(
    parts: list[tuple[str, str]], style: dict[str, Any], at_once: bool, data: st.DataObject
) -> None:
    chunks = [chunk(build(kind, text, style, i)) for i, (kind, text) in enumerate(parts)]
    pieces = [HEAD, *chunks, chunk(FINISH) + chunk(DONE) + END]
    if data.draw(st.booleans()):
        wire = b"".join(pieces)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
        reads = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True) if a < b]
    else:
        reads = pieces
    exchange = exchange_of(reads, at_once=at_once)
    assert exchange.ended, "the end was not noticed"
    record = record_of(exchange)
    texts = [text for _, text in parts]
    assert exchange.text == "".join(texts)
    assert record.events == len(parts) + 2
    assert len(record.event_us) == sum(1 for t in texts if t)
    assert record.response_bytes == sum(map(len, reads))
    if reads is pieces:
        assert record.event_us == [(i + 1) * 1000 for i, t in enumerate(texts) if t]
        assert record.coalesced_events == 0
    if any(texts):
        assert (record.outcome, record.error_text) == ("ok", None)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 40), st.integers(0, 5))
def test_the_end_is_noticed_wherever_it_is_cut(cut: int, more: int) -> None:
    wire = HEAD + chunk(TOKEN) * 5 + chunk(FINISH) + chunk(usage(5)) + chunk(DONE) + END
    middle = len(wire) - cut
    second = min(len(wire), middle + more)
    reads = [HEAD, wire[len(HEAD) : middle], wire[middle:second], wire[second:]]
    exchange = exchange_of([r for r in reads if r])
    assert exchange.ended
    assert record_of(exchange).outcome == "ok"


def test_reads_wait_within_a_stream_only() -> None:
    exchange = Exchange(decode_chunk)
    exchange.received(HEAD, SENT, SENT)
    assert exchange.is_due(HEAD)
    exchange.parse()
    exchange.received(chunk(TOKEN), SENT, SENT)
    assert not exchange.is_due(chunk(TOKEN))
    assert exchange.is_due(END)
    assert exchange.is_due(b"\n")
    for _ in range(SLICE):
        exchange.received(chunk(TOKEN), SENT, SENT)
    assert exchange.is_due(chunk(TOKEN))


def test_chunks_of_one_read_are_marked_but_for_the_last() -> None:
    record = record_of(exchange_of([HEAD, chunk(TOKEN), chunk(TOKEN) * 3, chunk(TOKEN), chunk(FINISH) + END]))
    assert record.coalesced == [1, 2]
    assert record.coalesced_events == 2
    assert record.event_us == [1000, 2000, 2000, 2000, 3000]
    assert record.coalesced_error_ms == 1e-6


def test_a_full_buffer_makes_all_its_events_inexact() -> None:
    exchange = Exchange(decode_chunk)
    exchange.sent_ns = SENT
    exchange.overfull.add(clock.to_stamp(SENT + 2 * MS))
    exchange.received(HEAD + chunk(TOKEN), SENT + MS, SENT)
    exchange.received(chunk(TOKEN) * 2, SENT + 2 * MS, SENT + MS)
    exchange.received(chunk(TOKEN), SENT + 3 * MS, SENT + 2 * MS)
    exchange.received(chunk(FINISH) + END, SENT + 4 * MS, SENT + 3 * MS)
    record = record_of(exchange)
    assert record.coalesced == [1, 2]
    assert record.event_us == [1000, 2000, 2000, 3000]


def test_chunk_sizes_that_lie_are_not_taken_for_an_event() -> None:
    lie = b"%x\r\n%s\r\n" % (len(TOKEN) - 1, TOKEN)
    exchange = exchange_of([HEAD, chunk(TOKEN), chunk(TOKEN), chunk(TOKEN), lie, chunk(TOKEN)])
    record = record_of(exchange)
    assert (record.outcome, record.error) == ("failed", "malformed")
    assert len(record.event_us) <= 4


def test_sizes_in_capitals_with_zeros_or_extensions_are_lawful() -> None:
    size = len(TOKEN)
    forms = [b"%X" % size, b"00%x" % size, b"%x;name=value" % size, b"%x" % size]
    reads = [HEAD] + [form + b"\r\n" + TOKEN + b"\r\n" for form in forms * 3] + [chunk(FINISH), END]
    record = record_of(exchange_of(reads))
    assert record.outcome == "ok"
    assert len(record.event_us) == 12


@pytest.mark.parametrize(("finish", "short"), [(b"length", False), (b"stop", True)])
def test_fewer_events_than_tokens_asked_is_short_only_where_the_server_does_not_say_length(
    finish: bytes, short: bool
) -> None:
    """Without usage, two of three tokens gave an event: the third ended inside a character."""
    last = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}\n\n' % finish
    exchange = exchange_of([HEAD, chunk(TOKEN), chunk(TOKEN), chunk(last + DONE), END])
    exchange.asked_output_tokens = 3
    record = record_of(exchange)
    assert (record.outcome, record.output_tokens, record.token_source) == ("ok", 2, "events")
    assert record.short_answer is short
