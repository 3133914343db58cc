"""Control calls against what the real servers answered (replayed), and what servers may answer instead."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from loadgen.config import EngineSpec, Settings
from loadgen.engines import EngineError, OpenAIEngine, make_engine, preflight
from loadgen.engines.info import CacheCounters
from loadgen.workload.prompt import Prompt
from tests.support.canned import Answer, CannedServer, Route, Seen, as_json, captured_routes

HI = Prompt(0, "Hi")
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1"


def engine(kind: str, url: str, *, spec: dict[str, Any] | None = None, **settings: Any) -> OpenAIEngine:
    return make_engine(
        EngineSpec(name="a", kind=kind, url=url, **(spec or {})),  # type: ignore[arg-type]
        Settings(**settings),
    )


def refusal(
    kind: str, routes: dict[str, Route], *, spec: dict[str, Any] | None = None, **settings: Any
) -> tuple[str, str]:
    """(sentence, reason) of preflight, the server's address written as URL."""
    with CannedServer(routes) as server:
        e = engine(kind, server.url, spec=spec, **settings)
        with pytest.raises(EngineError) as caught:
            preflight.check(e, e.settings)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(server.url, "URL"), caught.value.reason


def test_vllm_as_captured() -> None:
    with CannedServer(captured_routes("vllm")) as server:
        e = engine("vllm", server.url)
        info = preflight.check(e, e.settings)
        assert (info.server, info.version, info.model) == ("vLLM", "0.32.0", "smollm2")
        assert info.models == ("smollm2",)
        assert (info.context, info.slots, info.total_context) == (4096, None, 46592)
        assert info.prefix_cache is True
        assert info.simulated is False
        assert info.facts["model_root"].endswith("/smollm2-135m-hf")
        assert info.notes == []
        assert e.model == "smollm2"
        assert e.cache_counters() == CacheCounters(0, 0)
        assert e.queue_depth() == (0, 0)
        assert info.to_dict()["models"] == ["smollm2"]


def test_llamacpp_as_captured() -> None:
    with CannedServer(captured_routes("llamacpp")) as server:
        e = engine("llamacpp", server.url, users=4)
        info = preflight.check(e, e.settings)
        assert (info.server, info.version, info.model) == ("llama.cpp", "b0-unknown", "smollm2")
        assert (info.context, info.slots, info.total_context) == (4096, 4, None)
        assert info.facts["model_path"] == "models/SmolLM2-135M-Instruct.Q4_1.gguf"
        assert (info.facts["n_ctx_train"], info.facts["model_ftype"]) == (8192, "Q4_1")
        assert len(info.facts["chat_template_sha256"]) == 64
        assert info.notes == []
        assert e.cache_counters() == CacheCounters(4689 + 1451, 1451)
        assert e.queue_depth() == (1, 0)


def test_more_users_than_slots_is_said() -> None:
    with CannedServer(captured_routes("llamacpp")) as server:
        e = engine("llamacpp", server.url, users=16)
        (note,) = preflight.check(e, e.settings).notes
    assert note.startswith("16 users share 4 slots")


def test_slots_that_may_share_one_cache_are_named() -> None:
    with CannedServer(captured_routes("llamacpp")) as server:
        long = engine("llamacpp", server.url, users=4, prompt_tokens=2000, output_tokens=256)
        (note,) = preflight.check(long, long.settings).notes
        assert note.startswith("4 requests at once need 9024 tokens: started without -np")
        alone = engine("llamacpp", server.url, users=1, prompt_tokens=2000, output_tokens=256)
        assert preflight.check(alone, alone.settings).notes == []


def test_openai_kind_takes_any_server() -> None:
    for name in ("vllm", "llamacpp"):
        with CannedServer(captured_routes(name)) as server:
            e = engine("openai", server.url)
            info = preflight.check(e, e.settings)
            assert (info.model, info.context, info.slots) == ("smollm2", 4096, None)
            assert e.cache_counters() is None
            assert e.queue_depth() is None


def test_the_wrong_kind_is_named() -> None:
    assert refusal("vllm", captured_routes("llamacpp")) == (
        "engine a: URL is a llama.cpp server, not vLLM: write --engine a=llamacpp:URL",
        "wrong_kind",
    )
    assert refusal("llamacpp", captured_routes("vllm")) == (
        "engine a: URL is a vLLM server, not llama.cpp: write --engine a=vllm:URL",
        "wrong_kind",
    )


@pytest.mark.parametrize("kind", ["vllm", "llamacpp"])
def test_another_model_than_asked(kind: str) -> None:
    text, reason = refusal(kind, captured_routes(kind), spec={"model": "qwen3"})
    assert text.startswith("engine a: URL serves smollm2, not qwen3: change model in [engines.a]")
    assert reason == "model"


@pytest.mark.parametrize("model", ["smollm2", f"{MODEL_FILE}.gguf", MODEL_FILE])
def test_llamacpp_models_by_alias_and_file(model: str) -> None:
    with CannedServer(captured_routes("llamacpp")) as server:
        e = engine("llamacpp", server.url, spec={"model": model})
        assert preflight.check(e, e.settings).model == model


def test_context_too_short() -> None:
    text, reason = refusal("llamacpp", captured_routes("llamacpp"), prompt_tokens=4000, output_tokens=256)
    assert text == (
        "engine a: URL has 4096 tokens in each slot, too few for 4000 prompt and 256 output tokens: "
        "start it with -c 17024 -np 4, or lower --prompt-tokens or --output-tokens"
    )
    assert reason == "context"
    text, _ = refusal("vllm", captured_routes("vllm"), prompt_tokens=4000, output_tokens=97)
    assert "has 4096 tokens as context, too few for 4000 prompt and 97 output tokens" in text
    assert "--max-model-len 4097" in text


def test_context_that_just_fits() -> None:
    with CannedServer(captured_routes("vllm")) as server:
        e = engine("vllm", server.url, prompt_tokens=3840, output_tokens=256)
        assert preflight.check(e, e.settings).context == 4096


def test_loading() -> None:
    loading = as_json({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, 503)
    text, reason = refusal("llamacpp", {"/health": loading})
    said = "HTTP 503: Loading model (unavailable_error, 503)"
    assert text == f"engine a: URL is not ready yet ({said}): wait and try again"
    assert reason == "loading"
    with CannedServer({"/health": loading}) as server:
        assert engine("llamacpp", server.url).health().state == "loading"
    assert refusal("openai", {"/v1/models": Answer(503)})[1] == "loading"
    assert refusal("vllm", {"/health": loading})[1] == "loading"


def test_a_dead_vllm_engine_is_not_loading() -> None:
    text, reason = refusal("vllm", {"/health": Answer(503)})
    assert text.endswith("/health answers HTTP 503: its engine process has stopped; look at the server's log")
    assert reason == "answer"


def test_keys() -> None:
    denied = as_json({"error": {"message": "Invalid API Key", "type": "auth", "code": 401}}, 401)
    routes: dict[str, Route] = {**captured_routes("vllm"), "/v1/models": denied}
    text, reason = refusal("vllm", routes)
    assert "wants an API key (HTTP 401: Invalid API Key (auth, 401))" in text
    assert "api_key_env, in [engines.a] of loadgen.toml" in text
    assert reason == "auth"


def test_a_refused_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    routes: dict[str, Route] = {**captured_routes("llamacpp"), "/props": Answer(403, b"no")}
    text, reason = refusal("llamacpp", routes, spec={"api_key_env": "MY_KEY"})
    assert text == "engine a: URL refuses the key in MY_KEY (HTTP 403: no)"
    assert reason == "auth"


def test_something_else_listens_there() -> None:
    page = Answer(200, b"<html>hello</html>", {"Content-Type": "text/html"})
    text, reason = refusal("vllm", {"/health": page, "/v1/models": page})
    assert "URL is no OpenAI-compatible server: GET /v1/models gave no list of models (<html>hello" in text
    assert reason == "answer"
    text, reason = refusal("vllm", {})
    assert "URL has no /v1/models (HTTP 404: Not Found): is this the server's address" in text
    assert reason == "missing"


def test_a_gateway_that_passes_v1_alone() -> None:
    routes = {"/v1/models": captured_routes("vllm")["/v1/models"]}
    with CannedServer(routes) as server:
        e = engine("vllm", server.url)
        info = preflight.check(e, e.settings)
        assert (info.version, info.model, info.context) == (None, "smollm2", 4096)
        assert e.queue_depth() is None
        assert e.cache_counters() is None


def test_many_models_of_an_openai_server() -> None:
    listing = as_json({"data": [{"id": f"m{i}"} for i in range(9)]})
    text, reason = refusal("openai", {"/v1/models": listing})
    assert "URL serves m0, m1, m2, m3, m4 and 4 more: say which one with model = '...'" in text
    assert reason == "model"
    with CannedServer({"/v1/models": listing}) as server:
        e = engine("openai", server.url, spec={"model": "m7"})
        assert preflight.check(e, e.settings).model == "m7"


def test_an_adapter_listed_first_is_not_the_model() -> None:
    rows = [
        {"id": "lora", "owned_by": "vllm", "parent": "base"},
        {"id": "base", "owned_by": "vllm", "parent": None, "max_model_len": 8192},
    ]
    with CannedServer({"/health": Answer(), "/v1/models": as_json({"data": rows})}) as server:
        e = engine("vllm", server.url)
        info = preflight.check(e, e.settings)
        assert (info.model, info.context, e.model) == ("base", 8192, "base")


def test_no_model_at_all() -> None:
    text, reason = refusal("openai", {"/v1/models": as_json({"data": []})})
    assert "serves no model" in text
    assert reason == "model"


def test_a_server_without_a_list_of_models() -> None:
    with CannedServer({}) as server:
        e = engine("openai", server.url, spec={"model": "m"})
        info = preflight.check(e, e.settings)
        assert (info.model, info.models) == ("m", ())


def test_simulated_engines_say_so() -> None:
    mark = {"X-Loadgen-Simulated": "vllm"}
    with CannedServer(captured_routes("vllm"), headers=mark) as server:
        assert engine("vllm", server.url).identify().simulated is True


def test_texts_from_servers_are_bounded() -> None:
    row = {"id": "m" * 1000, "owned_by": "vllm", "root": "r" * 1000}
    with CannedServer({"/v1/models": as_json({"data": [row] * 5000})}) as server:
        info = engine("vllm", server.url).identify()
        assert len(info.models) <= 1000
        assert max(map(len, info.models)) <= 200
        assert len(info.facts["model_root"]) <= 300


ODD: list[Any] = [
    {},
    [],
    {"data": [1, None, {"id": 5}]},
    {"data": [{"id": "m", "meta": [], "max_model_len": "x"}]},
]


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "openai"])
@pytest.mark.parametrize("body", ODD)
def test_odd_answers_raise_nothing_else(kind: str, body: Any) -> None:
    routes: dict[str, Route] = {
        "/health": Answer(),
        "/v1/models": as_json(body),
        "/props": as_json(body),
        "/version": as_json(body),
        "/metrics": Answer(200, b"\xff\xfe{}"),
    }
    with CannedServer(routes) as server:
        e = engine(kind, server.url)
        with contextlib.suppress(EngineError):
            preflight.check(e, e.settings)
        assert e.cache_counters() is None
        assert e.queue_depth() is None


# Counting tokens.


def test_vllm_counts_with_tokenize() -> None:
    def tokenize(seen: Seen) -> Answer:
        return as_json({"count": 31 if "messages" in seen.json() else 1, "tokens": []})

    with CannedServer({"/tokenize": tokenize}) as server:
        chat = engine("vllm", server.url, spec={"model": "m"})
        assert (chat.count_tokens(HI), chat.counting) == (31, "tokenizer")
        plain = engine("vllm", server.url, api="completions")
        assert (plain.count_tokens(HI), plain.counting) == (1, "tokenizer")
        first, second = (s.json() for s in server.seen)
    assert first == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert second == {"prompt": "Hi"}


def test_llamacpp_counts_what_its_template_makes() -> None:
    routes: dict[str, Route] = {
        "/apply-template": lambda seen: as_json({"prompt": f"<t>{seen.json()['messages'][0]['content']}"}),
        "/tokenize": lambda seen: as_json({"tokens": list(seen.json()["content"])}),
    }
    with CannedServer(routes) as server:
        chat = engine("llamacpp", server.url)
        assert (chat.count_tokens(HI), chat.counting) == (5, "tokenizer")
        assert engine("llamacpp", server.url, api="completions").count_tokens(HI) == 2
        assert server.asked("/apply-template")[0].json()["chat_template_kwargs"] == {"enable_thinking": False}
        assert server.asked("/tokenize")[0].json() == {
            "content": "<t>Hi",
            "add_special": True,
            "parse_special": True,
        }


@pytest.mark.parametrize("kind", ["vllm", "llamacpp", "openai"])
def test_counting_by_a_request_for_one_token(kind: str) -> None:
    def complete(seen: Seen) -> Answer:
        assert (seen.json()["max_tokens"], seen.json()["stream"]) == (1, False)
        return as_json({"choices": [], "usage": {"prompt_tokens": 33, "completion_tokens": 1}})

    with CannedServer({"/v1/chat/completions": complete}) as server:
        e = engine(kind, server.url)
        assert [e.count_tokens(HI), e.count_tokens(HI)] == [33, 33]
        assert e.counting == "generation"
        assert len(server.asked("/tokenize")) + len(server.asked("/apply-template")) <= 1  # asked only once


def test_a_server_that_counts_nothing() -> None:
    with CannedServer({"/v1/chat/completions": as_json({"choices": []})}) as server:
        e = engine("openai", server.url)
        assert (e.count_tokens(HI), e.counting) == (None, "none")
        assert e.count_tokens(HI) is None
        assert len(server.seen) == 1


def test_an_unknown_model_is_no_missing_tokenizer() -> None:
    gone = as_json({"error": {"message": "The model `m` does not exist.", "type": "NotFoundError"}}, 404)
    with CannedServer({"/tokenize": gone}) as server:
        e = engine("vllm", server.url)
        with pytest.raises(EngineError, match="The model `m` does not exist"):
            e.count_tokens(HI)
        assert e.counting == "tokenizer"


def test_counting_errors() -> None:
    gone = as_json({"error": {"message": "The model `m` does not exist.", "type": "NotFoundError"}}, 404)
    with CannedServer({"/v1/chat/completions": gone, "/tokenize": Answer(500, b"oops")}) as server:
        with pytest.raises(EngineError, match="The model `m` does not exist"):
            engine("openai", server.url).count_tokens(HI)
        with pytest.raises(EngineError, match="/tokenize answers HTTP 500: oops"):
            engine("vllm", server.url).count_tokens(HI)
