"""The simulated servers against the captures of the real ones: every request again, every answer compared.

Compared are the status, the names of all headers in order and case, whether the connection stays open, the
error bodies, and of streams the keys and types of every class of event in the order in which they come, how
events share HTTP chunks, and the numbers of usage. Text, ids, times and speed differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from loadgen.sim.launch import SimProcess
from loadgen.sim.wire import MARK
from tests.sim.raw import Got, Raw, event_text
from tests.support.captures import Capture, Exchange, capture, captures

SKIPPED = {
    "native_completion": "llama.cpp's own API is not simulated",
    "server_killed_midstream": "a fault, see test_faults",
    "disconnect": "the client's doing, see test_server",
    "get_openapi.json": "not simulated",
    "completions_tokens": "token ids of another tokenizer",
}
# Ours tell that they are simulated; models and templates are others.
OWN_KEYS = {"simulated"}


def _cases() -> list[Any]:
    out = []
    for engine in ("vllm", "llamacpp"):
        for c in captures(engine):
            if c.case in SKIPPED and not (c.case == "get_openapi.json" and engine == "llamacpp"):
                continue
            if re.fullmatch(r"concurrent16_(?!00)\d+", c.case):
                continue  # sixteen of a kind
            out.append(pytest.param(c.engine, c.case, id=c.id))
    return out


@pytest.fixture(scope="module")
def sims() -> Iterator[dict[str, SimProcess]]:
    fast: dict[str, Any] = {"model": "smollm2", "context": 4096, "step_s": 0.0001, "odd_share": 0}
    with (
        SimProcess("vllm", preset="vllm-fast", **fast) as vllm,
        SimProcess("llamacpp", preset="llamacpp-fast", slots=4, **fast) as llama,
    ):
        yield {"vllm": vllm, "llamacpp": llama}


def _shape(value: Any) -> Any:
    """Keys in order and the types of what they hold."""
    if isinstance(value, dict):
        return tuple((k, _shape(v)) for k, v in value.items() if k not in OWN_KEYS)
    if isinstance(value, list):
        return ["list", *([_shape(value[0])] if value else [])]
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return "number" if isinstance(value, (int, float)) else "text"


def _kind(payload: bytes) -> str:
    if payload == b"[DONE]":
        return "done"
    event = json.loads(payload)
    if not event.get("choices"):
        return "usage"
    choice = event["choices"][0]
    if (choice.get("delta") or {}).get("role"):
        return "role"
    # vLLM's half characters are events without text
    return "end" if choice.get("finish_reason") else "token"


def _payloads(chunk: bytes) -> list[bytes]:
    return [e[6:] for e in chunk.split(b"\n\n") if e.startswith(b"data: ")]


def _stream(chunks: list[bytes]) -> list[tuple[Any, ...]]:
    """The classes of events by HTTP chunk, repeats of a chunk left out."""
    out: list[tuple[Any, ...]] = []
    for chunk in chunks:
        shapes = tuple(
            (k := _kind(p), None if k == "done" else _shape(json.loads(p))) for p in _payloads(chunk)
        )
        if not out or out[-1] != shapes:
            out.append(shapes)
    return out


def _numbers(chunks: list[bytes]) -> list[Any]:
    """Usage without what depends on a tokenizer."""
    out = []
    for chunk in chunks:
        for p in _payloads(chunk):
            usage = None if p == b"[DONE]" else json.loads(p).get("usage")
            if usage:
                out.append(usage["completion_tokens"])
    return out


def _header_names(raw: bytes) -> list[str]:
    head = raw.partition(b"\r\n\r\n")[0].decode("latin-1")
    return [line.partition(":")[0] for line in head.split("\r\n")[1:]]


@pytest.mark.parametrize(("engine", "case"), _cases())
def test_answers_like_the_real_server(engine: str, case: str, sims: dict[str, SimProcess]) -> None:
    real = capture(engine, case)
    with Raw(sims[engine].url) as connection:
        for exchange in real.exchanges:
            if exchange.recv:  # else it was sent into a closed connection
                _compare(real, exchange, connection.ask(exchange.request))


def _compare(real: Capture, exchange: Exchange, got: Got) -> None:
    http = exchange.http()
    assert got.status == http.status
    assert got.header(MARK) == real.engine
    assert [n for n in got.header_names if n != MARK] == _header_names(exchange.raw)
    for name in ("content-type", "server", "connection", "keep-alive", "transfer-encoding", "vary", "allow"):
        assert got.header(name) == http.headers.get(name)
    if exchange.end == "eof" or (exchange.end == "next_request" and real.engine == "llamacpp"):
        assert got.ended == "eof"
    else:
        assert got.ended == "open"
    if http.headers.get("content-type", "").startswith("text/event-stream"):
        _compare_streams(real, list(http.chunks), got)
    elif http.status >= 400:
        _compare_errors(real.case, http.body, got.body)
    elif real.case == "get_metrics":
        _compare_metrics(real.engine, http.body.decode(), got.body.decode())
    elif http.body:
        ours, theirs = _shape(json.loads(got.body)), _shape(json.loads(http.body))
        assert ours == theirs


def _compare_streams(real: Capture, theirs: list[bytes], got: Got) -> None:
    ours = got.chunks
    if "chat_stop_eos" in real.case:
        assert _numbers(ours)[-1] > 0
    elif real.case in ("overflow_gen_chat_stream", "nomax_chat_stream"):
        usage = got.events[-1]["usage"]
        assert usage["total_tokens"] == 4096
    elif not real.case.startswith("empty_messages"):
        assert _numbers(ours) == _numbers(theirs)
    assert set(_flat(_stream(ours))) == set(_flat(_stream(theirs)))
    if "n2" not in real.case and "progress" not in real.case:
        assert _stream(ours)[0] == _stream(theirs)[0]
    assert _stream(ours)[-2:] == _stream(theirs)[-2:]


def _flat(stream: list[tuple[Any, ...]]) -> list[str]:
    return [repr(e) for chunk in stream for e in chunk]


def _compare_errors(case: str, theirs: bytes, ours: bytes) -> None:
    if case.startswith("overflow") and b"n_prompt_tokens" in theirs:
        number = re.compile(rb"\d{5}")
        assert number.sub(b"N", ours) == number.sub(b"N", theirs)
    else:
        assert ours == theirs


def _metric_names(text: str) -> list[tuple[str, str]]:
    rows = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    return [(n, k) for n, k in rows if not n.endswith("_created")]


def _compare_metrics(engine: str, theirs: str, ours: str) -> None:
    if engine == "llamacpp":
        assert re.findall("^#.*", ours, re.M) == re.findall("^#.*", theirs, re.M)
        return
    assert set(_metric_names(ours)) <= set(_metric_names(theirs))
    for line in ours.splitlines():
        if not line.startswith("#") and "cache_config" not in line and "_bucket" not in line:
            series = line.rpartition(" ")[0]
            assert series in theirs


def test_emoji_prompts_get_half_characters(sims: dict[str, SimProcess]) -> None:
    """vLLM: 64 tokens, 64 events, some without text. llama.cpp: fewer events than tokens, no role first."""
    request = capture("vllm", "chat_emoji").exchanges[0].request
    with Raw(sims["vllm"].url) as c:
        events = c.ask(request).events
    texts = [event_text(e) for e in events if e["choices"]][1:]
    assert len(texts) == 64
    assert "" in texts
    with Raw(sims["llamacpp"].url) as c:
        got = c.ask(request)
    tokens = [e for e in got.events if event_text(e)]
    assert len(tokens) < 64
    assert got.events[-1]["usage"]["completion_tokens"] == 64
    assert not any((c.get("delta") or {}).get("role") for e in got.events for c in e["choices"])
