"""Every event of every capture through decode and tally, against the table stated by hand."""

from __future__ import annotations

import re

import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.engines import UsageTally, make_engine
from loadgen.engines.chunk import Chunk
from loadgen.engines.openai import OpenAIEngine
from tests.support.captures import Exchange, captures

from .expected import Expected
from .expected_llamacpp import LLAMACPP, LLAMACPP_PING
from .expected_vllm import VLLM

EXPECTED = {"llamacpp": LLAMACPP, "llamacpp-ping": LLAMACPP_PING, "vllm": VLLM}
ALL = [
    pytest.param(engine, exchange, expected, id=f"{engine}-{case.case}-{i}")
    for engine in EXPECTED
    for case in captures(engine)
    for i, (exchange, expected) in enumerate(
        zip(case.exchanges, EXPECTED[engine].get(case.case, [None] * 2), strict=False)
    )
]


def an_engine(name: str) -> OpenAIEngine:
    kind = name.removesuffix("-ping")
    return make_engine(EngineSpec(name=name, kind=kind, url="http://127.0.0.1:1"), Settings())  # type: ignore[arg-type]


def event_data(body: bytes) -> list[bytes]:
    """The data of each event: these captures have one data line an event, LF, and a space."""
    return [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: ")]


def test_the_table_names_every_capture_and_exchange() -> None:
    for engine, table in EXPECTED.items():
        assert {c.case: len(c.exchanges) for c in captures(engine)} == {k: len(v) for k, v in table.items()}


@pytest.mark.parametrize(("engine", "exchange", "expected"), ALL)
def test_capture(engine: str, exchange: Exchange, expected: Expected) -> None:
    if expected.what == "dead":
        assert exchange.recv == ()
        return
    response = exchange.http()
    assert response.status == expected.status
    if expected.what == "http_error":
        text = an_engine(engine).http_error_text(response.status, response.body)
        assert text.startswith(f"HTTP {expected.status}: ")
        assert expected.error_text in text
        assert len(text) < 500
        assert text.isprintable()
        return
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    assert is_stream == (expected.what == "stream")
    if is_stream:
        check_stream(an_engine(engine), response.body, expected)


def check_stream(engine: OpenAIEngine, body: bytes, expected: Expected) -> None:
    data = event_data(body)
    assert (data[-1] == b"[DONE]") == expected.done
    chunks = [engine.decode(d) for d in data if d != b"[DONE]"]
    tally = UsageTally()
    for chunk in chunks:
        tally.add(chunk)

    assert tally.text_events == sum(c.has_text for c in chunks) == expected.events
    assert tally.token_source == expected.token_source
    usage = tally.usage()
    counted = usage.output_tokens if expected.token_source != "events" else expected.output_tokens
    assert (counted, usage.prompt_tokens, usage.cached_tokens) == (
        expected.output_tokens,
        expected.prompt_tokens,
        expected.cached_tokens,
    )
    assert tally.finished == (expected.outcome == "ok" or expected.error == "no_text")
    assert tally.finish_reason == expected.finish_reason
    assert len({c.choice for c in chunks if c.choice is not None}) == expected.choices
    errors = [c.error for c in chunks if c.error]
    assert errors == ([expected.error_text] if expected.error == "in_stream" else [])
    if expected.first_text is not None:
        assert next(c.answer for c in chunks if c.has_text) == expected.first_text
    check_exact_counts(chunks, expected)


def check_exact_counts(chunks: list[Chunk], expected: Expected) -> None:
    """Where the server counts by event, the counts never fall and end at its usage."""
    so_far = [c.output_tokens_so_far for c in chunks if c.output_tokens_so_far is not None]
    if so_far and expected.choices == 1:
        assert so_far == sorted(so_far)
        assert so_far[-1] == expected.output_tokens
    new = [c.new_tokens for c in chunks if c.new_tokens is not None]
    if new:
        assert sum(new) == expected.output_tokens


def case_chunks(name: str, case: str) -> list[Chunk]:
    exchange = next(c for c in captures(name) if c.case == case).exchanges[0]
    return [an_engine(name).decode(d) for d in event_data(exchange.http().body) if d != b"[DONE]"]


@pytest.mark.parametrize(
    ("engine", "case"),
    [
        ("llamacpp", "chat_timings_per_token"),
        ("llamacpp", "completions_timings_per_token"),
        ("llamacpp", "native_completion"),
        ("vllm", "chat_continuous_usage"),
        ("vllm", "completions_continuous_usage"),
    ],
)
def test_exact_tokens_of_each_event(engine: str, case: str) -> None:
    so_far = [c.output_tokens_so_far for c in case_chunks(engine, case) if c.has_text]
    assert so_far == list(range(1, 17))


def test_eight_tokens_an_event() -> None:
    so_far = [c.output_tokens_so_far for c in case_chunks("vllm", "server_killed_midstream") if c.has_text]
    assert so_far == [1, *range(9, 170, 8)]


def test_token_ids_are_counted() -> None:
    for case in ("chat_return_token_ids", "completions_return_token_ids"):
        assert [c.new_tokens for c in case_chunks("vllm", case) if c.has_text] == [1] * 8


def test_progress_events_are_not_text() -> None:
    chunks = case_chunks("llamacpp", "chat_return_progress")
    assert [c.has_text for c in chunks] == [False] * 3 + [True] * 8 + [False] * 2
    assert all(c.output_tokens_so_far is None for c in chunks[:3])


def test_response_ids() -> None:
    for engine, case in (("llamacpp", "chat_short"), ("vllm", "completions")):
        ids = {c.response_id for c in case_chunks(engine, case)}
        assert len(ids) == 1
        assert re.fullmatch(r"(chat)?cmpl-\w+", ids.pop() or "")
