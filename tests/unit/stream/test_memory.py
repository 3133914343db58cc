"""A long stream is parsed in slices: what it holds in memory is its times, not its bytes."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import tracemalloc

from loadgen.engines.decode import decode_chunk
from loadgen.stream.exchange import SLICE, Exchange
from tests.support.wire import HEAD, TOKEN

EVENTS = 50_000


def test_a_long_stream_holds_a_few_bytes_an_event() -> None:
    exchange = Exchange(decode_chunk)
    exchange.sent_ns = 1_000
    chunk = b"%x\r\n%s\r\n" % (len(TOKEN), TOKEN)
    tracemalloc.start()
    try:
        exchange.received(HEAD, 1_000, 0)
        for i in range(EVENTS):
            exchange.received(bytes(chunk), 2_000 + i * 1_000_000, 0)
            if exchange.is_due(chunk):
                assert exchange.parse()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(exchange.timeline.text_ns) >= EVENTS - SLICE
    assert peak < 2_000_000  # the bytes alone were 5 MB; an arrival time is 8 bytes


def test_a_body_that_is_no_stream_is_kept_only_in_part() -> None:
    exchange = Exchange(decode_chunk)
    exchange.received(b"HTTP/1.1 500 Oops\r\nContent-Length: 50000000\r\n\r\n", 1_000, 0)
    for _ in range(500):
        exchange.received(b"x" * 100_000, 2_000, 0)
        exchange.parse()
    assert exchange.complete
    assert len(exchange.error_body) < 2_000_000
