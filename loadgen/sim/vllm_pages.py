"""The pages of a vLLM server beside the completions. Pure."""

from __future__ import annotations

from typing import Any

from loadgen.sim.errors import vllm_error
from loadgen.sim.pages import Get, Page, Post, View, json_page, token_list
from loadgen.sim.tokens import chat_prompt, detokenize, token_bytes, tokenize
from loadgen.sim.vllm import VERSION
from loadgen.sim.vllm_metrics import vllm_metrics
from loadgen.sim.wire import new_id


def _vllm_models(v: View) -> Page:
    permission = {
        "id": new_id("modelperm-", 16, "0123456789abcdef"),
        "object": "model_permission",
        "created": v.started,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    model = {
        "id": v.model,
        "object": "model",
        "created": v.started,
        "owned_by": "vllm",
        "root": v.model,
        "parent": None,
        "max_model_len": v.scheduler.constants.context,
        "permission": [permission],
    }
    return json_page({"object": "list", "data": [model]})


def _vllm_tokenize(body: dict[str, Any], v: View) -> Page:
    _known_model(body, v)
    if "messages" in body:
        generate = body.get("add_generation_prompt", True) is not False
        ids = tokenize(chat_prompt(body["messages"], generate=generate), special=True)
    elif "prompt" in body:
        ids = tokenize(str(body["prompt"]), special=True)
    else:
        raise vllm_error(400, "Either prompt or messages must be provided.")
    strs = [_byte_level(token_bytes(t)) for t in ids] if body.get("return_token_strs") else None
    data = {
        "count": len(ids),
        "max_model_len": v.scheduler.constants.context,
        "tokens": ids,
        "token_strs": strs,
    }
    return json_page(data)


def _byte_level(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace(" ", "Ġ").replace("\n", "Ċ")


def _vllm_detokenize(body: dict[str, Any], v: View) -> Page:
    _known_model(body, v)
    return json_page({"prompt": detokenize(token_list(body))})


def _known_model(body: dict[str, Any], v: View) -> None:
    asked = body.get("model")
    if asked and asked != v.model:
        text = f"The model `{asked}` does not exist. Valid aliases: {v.model}."
        raise vllm_error(404, text, "NotFoundError", "model")


def _empty(_: View) -> Page:
    return Page(b"", empty=True)


GET: dict[str, Get] = {
    "/health": _empty,
    "/ping": _empty,
    "/load": lambda v: json_page({"server_load": v.load}),
    "/version": lambda v: json_page({"version": VERSION, "simulated": v.simulated}),
    "/v1/models": _vllm_models,
    "/metrics": lambda v: Page(
        vllm_metrics(v.scheduler, v.counters, v.model).encode(), "text/plain; version=1.0.0; charset=utf-8"
    ),
}
POST: dict[str, Post] = {
    "/tokenize": _vllm_tokenize,
    "/detokenize": _vllm_detokenize,
    "/ping": lambda _, v: _empty(v),
}
