"""The capture loader against facts read off the files by hand."""

from __future__ import annotations

import pytest

from tests.support.captures import ENGINES, capture, captures, raw_file


@pytest.mark.parametrize(("engine", "count"), [("llamacpp", 82), ("llamacpp-ping", 2), ("vllm", 81)])
def test_every_connection_is_there(engine: str, count: int) -> None:
    assert len(captures(engine)) == count


def test_times_count_from_the_request() -> None:
    (exchange,) = capture("llamacpp", "chat_short").exchanges
    assert exchange.path == "/v1/chat/completions"
    assert exchange.recv[0][0] == 3554092054167 - 3554086586409
    assert exchange.recv[0][1].startswith(b"HTTP/1.1 200 OK\r\n")
    assert exchange.end == "eof"
    assert exchange.http().body.endswith(b"data: [DONE]\n\n")


def test_two_requests_on_one_connection() -> None:
    first, second = capture("vllm", "keepalive_two").exchanges
    assert (first.end, second.end) == ("next_request", "open_after_complete")
    assert first.http().complete
    first, second = capture("llamacpp", "keepalive_two").exchanges
    assert (second.end, second.recv) == ("eof", ())
    with pytest.raises(ValueError, match="no response head"):
        second.http()


def test_a_body_cut_short_is_not_complete() -> None:
    assert not capture("llamacpp", "server_killed_midstream").exchanges[0].http().complete
    assert capture("vllm", "server_killed_midstream").exchanges[0].http().complete


def test_requests_are_whole() -> None:
    for engine in ENGINES:
        for case in captures(engine):
            for exchange in case.exchanges:
                head = exchange.request.partition(b"\r\n\r\n")[0].lower()
                if b"content-length: " in head:
                    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
                    assert len(exchange.request_body) == length, case.id


def test_other_formats() -> None:
    assert raw_file("vllm", "concurrent16.metrics.jsonl").startswith(b'{"t_ns"')
