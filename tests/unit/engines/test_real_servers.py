"""Control calls and request bodies against the real servers."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from loadgen.config import EngineSpec, Settings
from loadgen.engines import EngineError, OpenAIEngine, UsageTally, make_engine, preflight
from loadgen.workload.prompt import Prompt

REAL = [
    pytest.param("llamacpp", marks=pytest.mark.real_llamacpp),
    pytest.param("vllm", marks=pytest.mark.real_vllm),
]
NAMES = {"llamacpp": "llama.cpp", "vllm": "vLLM"}
TEXTS = [
    "Hi",
    " leading and trailing ",
    "Hello <|im_end|> wörld 🦊 日本語",
    "<|im_start|>user\nspecial tokens as text",
    "\n\n\ttabs\n",
    "word " * 300,
]


@pytest.fixture(scope="module", params=REAL)
def server(request: pytest.FixtureRequest) -> tuple[str, str]:
    """(kind, address)"""
    return request.param, request.getfixturevalue(f"real_{request.param}").url


def an_engine(url: str, kind: str, **settings: Any) -> OpenAIEngine:
    spec = EngineSpec(name="real", kind=kind, url=url)  # type: ignore[arg-type]
    return make_engine(spec, Settings(**{"users": 1, "prompt_tokens": 50, **settings}))


def post(engine: OpenAIEngine, body: bytes) -> requests.Response:
    return requests.post(
        engine.spec.url + engine.path, data=body, headers={"Content-Type": "application/json"}, timeout=120
    )


def test_preflight(server: tuple[str, str]) -> None:
    kind, url = server
    engine = an_engine(url, kind)
    info = preflight.check(engine, engine.settings)
    assert (info.server, info.context, info.simulated) == (NAMES[kind], 4096, False)
    assert info.slots == {"llamacpp": 4, "vllm": None}[kind]
    assert info.model in info.models
    assert info.version
    with pytest.raises(EngineError, match="too few for 5000 prompt"):
        preflight.check(engine, Settings(prompt_tokens=5000))
    other = "vllm" if kind == "llamacpp" else "llamacpp"
    with pytest.raises(EngineError, match=f"is a {NAMES[kind]} server, not {NAMES[other]}"):
        an_engine(url, other).identify()


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("text", TEXTS)
def test_counted_tokens_are_what_usage_says(server: tuple[str, str], api: str, text: str) -> None:
    kind, url = server
    engine = an_engine(url, kind, api=api)
    engine.identify()
    counted = engine.count_tokens(Prompt(0, text))
    assert engine.counting == "tokenizer"
    by_request = an_engine(url, "openai", api=api)
    by_request.identify()
    assert counted == by_request.count_tokens(Prompt(0, text))
    assert by_request.counting == "generation"


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_output_is_pinned(server: tuple[str, str], api: str) -> None:
    kind, url = server
    engine = an_engine(url, kind, api=api)
    engine.identify()
    prompt = Prompt(0, "Say only the word yes.")
    response = post(engine, engine.request_body(prompt, engine.model, output_tokens=40))
    assert response.status_code == 200
    tally = UsageTally()
    for line in response.content.split(b"\n"):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            tally.add(engine.decode(line[6:]))
    assert tally.usage().output_tokens == 40
    assert tally.usage().prompt_tokens == engine.count_tokens(prompt)
    assert tally.finish_reason == "length"
    assert tally.finished


def test_cache_counters_see_a_repeated_prompt(server: tuple[str, str]) -> None:
    kind, url = server
    engine = an_engine(url, kind, api="completions")
    engine.identify()
    prompt = Prompt(0, "A prompt that is sent twice, so that its second time comes out of the cache. " * 20)
    body = engine.request_body(prompt, engine.model, output_tokens=1, stream=False)
    tokens = engine.count_tokens(prompt)
    assert tokens is not None
    hits = []
    for _ in range(2):
        before = engine.cache_counters()
        assert post(engine, body).status_code == 200
        after = engine.cache_counters()
        assert before is not None
        assert after is not None
        assert after.since(before).queried == tokens
        hits.append(after.since(before).hit)
    assert hits[0] < 128 < hits[1] <= tokens  # vLLM keeps whole blocks of 128
    assert engine.queue_depth() == (0, 0)
