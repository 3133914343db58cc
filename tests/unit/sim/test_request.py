"""What is asked for, and what is refused (the wordings are compared with the captures in tests/sim)."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sim.errors import Refusal
from loadgen.sim.request import GenRequest, parse

HI = [{"role": "user", "content": "Hi"}]


def ask(kind: str, body: Any, *, chat: bool = True, context: int = 100) -> GenRequest:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse(
        kind, data, chat=chat, model="m", context=context, content_type="application/json", request_id=None
    )


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_what_is_asked(kind: str) -> None:
    r = ask(kind, {"messages": HI, "max_tokens": 5, "stream": True, "ignore_eos": True, "n": 2, "seed": 3})
    assert (len(r.prompt), r.max_tokens, r.stream, r.ignore_eos, r.n, r.seed) == (31, 5, True, True, 2, 3)
    assert not r.include_usage
    assert r.reuse


def test_usage_options() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    r = ask("vllm", {"messages": HI, "stream": True, "stream_options": options})
    assert r.include_usage
    assert r.continuous_usage


@pytest.mark.parametrize(
    ("kind", "chat", "body", "expected"),
    [
        ("vllm", True, {"messages": HI}, 69),  # what is left of the context
        ("vllm", True, {"messages": HI, "max_tokens": 90}, 69),
        ("vllm", False, {"prompt": "Hi"}, 16),  # OpenAI's default for plain completions
        ("llamacpp", True, {"messages": HI}, 69),
        ("llamacpp", True, {"messages": HI, "max_tokens": 1000}, 69),
        ("llamacpp", True, {"messages": HI, "max_tokens": 0}, 1),
        ("llamacpp", True, {"messages": HI, "max_completion_tokens": 7}, 7),
        ("llamacpp", False, {"prompt": "Hi", "n_predict": 4}, 4),
        ("llamacpp", False, {"prompt": ""}, 0),
    ],
)
def test_output_limit(kind: str, chat: bool, body: dict[str, Any], expected: int) -> None:
    assert ask(kind, body, chat=chat).max_tokens == expected


@pytest.mark.parametrize(
    ("kind", "body", "status", "words"),
    [
        ("vllm", {"messages": HI, "model": "other"}, 404, "does not exist"),
        ("vllm", {"messages": HI, "max_tokens": 101}, 400, "max_model_len=100"),
        ("vllm", {"messages": HI, "max_tokens": 0}, 400, "at least 1"),
        (
            "vllm",
            {"messages": [{"role": "user", "content": "a " * 200}]},
            400,
            "maximum context length is 100",
        ),
        ("vllm", b"[]", 400, "object"),
        ("vllm", {"messages": HI, "n": "x"}, 400, "validation error"),
        ("llamacpp", {"messages": [{"role": "user", "content": "a " * 200}]}, 400, "exceeds the available"),
        ("llamacpp", {}, 400, "'messages' is required"),
        ("llamacpp", {"messages": 3}, 400, "json.exception"),
        ("llamacpp", b"\xff", 400, "parse error"),
    ],
)
def test_refused(kind: str, body: Any, status: int, words: str) -> None:
    with pytest.raises(Refusal) as e:
        ask(kind, body)
    assert e.value.status == status
    assert e.value.body["error"]["code"] == status
    assert words in e.value.body["error"]["message"]


def test_llamacpp_ignores_the_models_name() -> None:
    assert ask("llamacpp", {"messages": HI, "model": "other"}).max_tokens


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "messages prompt max_tokens n seed temperature stream stream_options min_tokens chat_template_kwargs "
    "logprobs top_logprobs model n_predict"
)


BODIES = st.dictionaries(st.sampled_from(FIELDS.split()), JSON)


@given(st.sampled_from(["vllm", "llamacpp"]), st.booleans(), BODIES)
def test_no_body_breaks_the_server(kind: str, chat: bool, body: dict[str, Any]) -> None:
    """It is taken, or refused: nothing else is ever raised."""
    with contextlib.suppress(Refusal):
        assert 0 <= ask(kind, body, chat=chat).max_tokens <= 100


@given(st.binary(max_size=40))
def test_no_bytes_break_the_server(data: bytes) -> None:
    for kind in ("vllm", "llamacpp"):
        with pytest.raises(Refusal):
            ask(kind, data)
