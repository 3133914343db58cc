"""Every capture of the two real servers, replayed through the framing alone and through the whole client.

The right results were stated by hand (tests/unit/engines/expected_*.py).
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import gevent
import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.engines import make_engine
from loadgen.record import RequestRecord
from loadgen.stream.client import StreamClient
from loadgen.stream.exchange import Exchange
from tests.support import captures
from tests.support.wire import Peer, wire
from tests.unit.engines.expected import Expected
from tests.unit.engines.test_captures_decoded import ALL, an_engine

CASES = [p for p in ALL if p.values[2] is not None and p.values[2].what != "dead"]


def record_of(exchange: Exchange, engine: str) -> RequestRecord:
    record = RequestRecord()
    exchange.fill(record, an_engine(engine).http_error_text)
    return record


def check(record: RequestRecord, expected: Expected) -> None:
    if expected.outcome == "cancelled":
        # The capture ends where its client hung up: replayed to the end of the connection, that is a cut.
        assert (record.outcome, record.error) == ("failed", "truncated")
    else:
        assert record.outcome == expected.outcome, record.error_text
        assert record.error == expected.error
    if expected.error_text:
        assert expected.error_text in (record.error_text or "")
    assert record.status == expected.status
    if expected.what != "stream":
        assert record.event_us == []
        assert record.ttft_ms is None
        return
    assert len(record.event_us) == expected.events
    if expected.output_tokens is not None:
        assert record.output_tokens == expected.output_tokens
    assert record.prompt_tokens == expected.prompt_tokens
    assert record.cached_tokens == expected.cached_tokens
    assert record.finish_reason == expected.finish_reason
    if record.output_tokens is not None:
        assert record.token_source == expected.token_source


def first_text_ns(exchange: captures.Exchange, first_text: str) -> int | None:
    """Independent of the code under test: the read that brought the bytes of the first text."""
    needle = f'"{first_text}"'.encode()
    seen = b""
    for ns, data in exchange.recv:
        seen += data
        if needle in seen:
            return ns
    return None


@pytest.mark.parametrize(("engine", "capture", "expected"), CASES)
def test_framing_and_times(engine: str, capture: captures.Exchange, expected: Expected) -> None:
    exchange = Exchange(an_engine(engine).decode)
    exchange.sent_ns = 1_000_000_000_000
    for ns, data in capture.recv:
        exchange.received(data, exchange.sent_ns + ns, exchange.sent_ns + ns - 1)
    if capture.end == "eof" or not exchange.ended:
        exchange.closed(exchange.sent_ns + (capture.end_ns or 0))
    exchange.finish()
    record = record_of(exchange, engine)
    check(record, expected)
    assert record.headers_ms is not None
    assert record.headers_ms >= capture.recv[0][0] / 1e6
    if expected.what == "stream" and expected.first_text and not expected.first_text.isspace():
        at = first_text_ns(capture, expected.first_text)
        assert record.ttft_ms == pytest.approx(at / 1e6)  # type: ignore[operator]


@pytest.mark.parametrize(("engine", "capture", "expected"), CASES)
def test_through_the_client(engine: str, capture: captures.Exchange, expected: Expected) -> None:
    def replay(peer: Peer) -> None:
        peer.request()
        for _, data in capture.recv:
            peer.send(data)
            gevent.sleep(0)
        peer.sock.close()

    with wire(replay) as server:
        kind = engine.removesuffix("-ping")
        spec = EngineSpec(name=engine, kind=kind, url=server.url)  # type: ignore[arg-type]
        client = StreamClient(make_engine(spec, Settings()))
        exchange = client.send("/v1/chat/completions", b"{}")
        client.close()
        check(record_of(exchange, engine), expected)
