"""Control calls and request bodies against the real llama.cpp server."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from loadgen.config import EngineSpec, Settings
from loadgen.engines import EngineError, OpenAIEngine, UsageTally, make_engine, preflight
from loadgen.workload.prompt import Prompt

pytestmark = pytest.mark.real_llamacpp

TEXTS = [
    "Hi",
    " leading and trailing ",
    "Hello <|im_end|> wörld 🦊 日本語",
    "<|im_start|>user\nspecial tokens as text",
    "\n\n\ttabs\n",
    "word " * 300,
]


def an_engine(url: str, kind: str = "llamacpp", **settings: Any) -> OpenAIEngine:
    spec = EngineSpec(name="real", kind=kind, url=url)  # type: ignore[arg-type]
    return make_engine(spec, Settings(**{"users": 1, "prompt_tokens": 50, **settings}))


def test_preflight(real_llamacpp: Any) -> None:
    engine = an_engine(real_llamacpp.url)
    info = preflight.check(engine, engine.settings)
    assert (info.server, info.context, info.slots, info.simulated) == ("llama.cpp", 4096, 4, False)
    assert info.model in info.models
    assert str(info.facts["model_path"]).endswith(".gguf")
    with pytest.raises(EngineError, match="too few for 5000 prompt"):
        preflight.check(engine, Settings(prompt_tokens=5000))
    with pytest.raises(EngineError, match=r"is a llama\.cpp server, not vLLM"):
        an_engine(real_llamacpp.url, "vllm").identify()


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("text", TEXTS)
def test_counted_tokens_are_what_usage_says(real_llamacpp: Any, api: str, text: str) -> None:
    engine = an_engine(real_llamacpp.url, api=api)
    counted = engine.count_tokens(Prompt(0, text))
    assert engine.counting == "tokenizer"
    by_request = an_engine(real_llamacpp.url, "openai", api=api)
    assert counted == by_request.count_tokens(Prompt(0, text))
    assert by_request.counting == "generation"


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_output_is_pinned(real_llamacpp: Any, api: str) -> None:
    engine = an_engine(real_llamacpp.url, api=api)
    body = engine.request_body(Prompt(0, "Say only the word yes."), engine.model, output_tokens=40)
    tally = UsageTally()
    with requests.post(real_llamacpp.url + engine.path, data=body, stream=True, timeout=60) as response:
        assert response.status_code == 200
        for line in response.iter_lines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                tally.add(engine.decode(line[6:]))
    assert tally.usage().output_tokens == 40
    assert tally.usage().prompt_tokens == engine.count_tokens(Prompt(0, "Say only the word yes."))
    assert tally.finish_reason == "length"
    assert tally.finished


def test_cache_counters_see_a_repeated_prompt(real_llamacpp: Any) -> None:
    engine = an_engine(real_llamacpp.url, api="completions")
    prompt = Prompt(0, "A prompt that is sent twice, so that its second time comes out of the cache. " * 4)
    body = engine.request_body(prompt, engine.model, output_tokens=1, stream=False)
    tokens = engine.count_tokens(prompt)
    assert tokens is not None
    seen = []
    for _ in range(2):
        before = engine.cache_counters()
        answer = requests.post(real_llamacpp.url + engine.path, data=body, timeout=60).json()
        usage = answer["usage"]
        after = engine.cache_counters()
        assert before is not None
        assert after is not None
        seen.append((after.since(before), usage["prompt_tokens_details"]["cached_tokens"]))
    assert [counters.queried for counters, _ in seen] == [tokens, tokens]
    assert [counters.hit for counters, _ in seen] == [cached for _, cached in seen]
    assert seen[1][1] >= tokens - 4
    assert engine.queue_depth() == (0, 0)
