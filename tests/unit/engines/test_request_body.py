"""Request bodies: what each kind of server is asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadgen.config import ConfigError, EngineSpec, Settings
from loadgen.engines import EngineError, make_engine
from loadgen.workload.prompt import Prompt

HI = Prompt(0, "Hi")


def body(kind: str, *, stream: bool = True, extra: dict[str, Any] | None = None, **settings: Any) -> Any:
    spec = EngineSpec(name="e", kind=kind, url="http://h", extra_body=extra or {})  # type: ignore[arg-type]
    engine = make_engine(spec, Settings(**settings))
    return json.loads(engine.request_body(HI, "m", output_tokens=256, stream=stream))


COMMON = {
    "model": "m",
    "max_tokens": 256,
    "temperature": 0,
    "seed": 1,
    "stream": True,
    "stream_options": {"include_usage": True},
}
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("kind", "api", "own"),
    [
        ("openai", "chat", CHAT),
        ("openai", "completions", {"prompt": "Hi"}),
        ("vllm", "chat", {**CHAT, "ignore_eos": True, "min_tokens": 256, **NO_THINKING}),
        ("vllm", "completions", {"prompt": "Hi", "ignore_eos": True, "min_tokens": 256}),
        ("llamacpp", "chat", {**CHAT, "ignore_eos": True, **NO_THINKING}),
        ("llamacpp", "completions", {"prompt": "Hi", "ignore_eos": True}),
    ],
)
def test_body(kind: str, api: str, own: dict[str, Any]) -> None:
    assert body(kind, api=api) == {**COMMON, **own}


def test_paths() -> None:
    spec = EngineSpec(name="e", kind="vllm", url="http://h")
    assert make_engine(spec, Settings()).path == "/v1/chat/completions"
    assert make_engine(spec, Settings(api="completions")).path == "/v1/completions"


def test_settings_reach_the_body() -> None:
    got = body("vllm", temperature=0.7, seed=42, thinking="on")
    assert (got["temperature"], got["seed"]) == (0.7, 42)
    assert got["chat_template_kwargs"] == {"enable_thinking": True}


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "openai"])
def test_no_stream_options_without_stream(kind: str) -> None:  # vLLM answers 400 to them
    got = body(kind, stream=False)
    assert got["stream"] is False
    assert "stream_options" not in got


def test_extra_body_wins_and_merges_nested() -> None:
    extra = {"temperature": 1, "top_k": 1, "stream_options": {"continuous_usage_stats": True}}
    got = body("vllm", extra={**extra, "chat_template_kwargs": {"enable_thinking": True, "x": 1}})
    assert (got["temperature"], got["top_k"]) == (1, 1)
    assert got["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert got["chat_template_kwargs"] == {"enable_thinking": True, "x": 1}


def test_extra_body_is_not_changed_by_use() -> None:
    extra = {"chat_template_kwargs": {"x": 1}}
    body("vllm", extra=extra)
    assert extra == {"chat_template_kwargs": {"x": 1}}


def test_max_completion_tokens_replaces_max_tokens() -> None:
    got = body("openai", extra={"max_completion_tokens": 256})
    assert "max_tokens" not in got


def test_conversations_and_no_model() -> None:
    engine = make_engine(EngineSpec(name="e", kind="vllm", url="http://h"), Settings())
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})
    got = json.loads(engine.request_body(Prompt(0, "", messages=messages), None, output_tokens=1))
    assert got["messages"] == list(messages)
    assert "model" not in got


def test_equal_arguments_give_equal_bytes() -> None:
    bodies = set()
    for _ in range(3):
        engine = make_engine(EngineSpec(name="e", kind="vllm", url="http://h"), Settings())
        bodies.add(engine.request_body(HI, "m", output_tokens=8))
    assert len(bodies) == 1


def test_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EngineSpec(name="e", kind="openai", url="http://h", api_key_env="KEY", headers={"X-A": "b"})
    engine = make_engine(spec, Settings())
    monkeypatch.delenv("KEY", raising=False)
    with pytest.raises(EngineError, match="the environment variable KEY is not set"):
        engine.headers()
    with pytest.raises(ConfigError):
        spec.api_key()
    monkeypatch.setenv("KEY", "secret\n")  # as it comes out of a file
    assert engine.headers() == {"Authorization": "Bearer secret", "X-A": "b"}
    monkeypatch.setenv("KEY", "sec\nret")
    with pytest.raises(EngineError, match="KEY holds characters") as caught:
        engine.headers()
    assert "ret" not in str(caught.value)
