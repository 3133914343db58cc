"""What a client asks for: a completion request checked the way each server checks it. Pure.

`parse` gives a GenRequest or raises Refusal with the status and JSON body of the real server's answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import orjson

from loadgen.sim.errors import llama_error, vllm_error, vllm_invalid
from loadgen.sim.tokens import chat_prompt, content_text, detokenize, tokenize


@dataclass(slots=True)
class GenRequest:
    """A completion to make. `max_tokens` is what the context leaves room for, at most."""

    chat: bool
    prompt: tuple[int, ...]
    max_tokens: int
    stream: bool = False
    n: int = 1
    seed: int = 0
    ignore_eos: bool = False
    min_tokens: int = 0
    include_usage: bool = False
    continuous_usage: bool = False
    return_token_ids: bool = False
    timings_per_token: bool = False
    return_progress: bool = False
    reuse: bool = True
    thinking: bool = False
    logprobs: int | None = None
    request_id: str | None = None
    body: dict[str, Any] = field(default_factory=dict)


def load_json(kind: str, data: bytes) -> dict[str, Any]:
    """The request's JSON object, or the server's complaint about it."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            body = json.loads(data)
        except (json.JSONDecodeError, UnicodeDecodeError) as e:
            line, column, pos = (
                (e.lineno, e.colno, e.pos) if isinstance(e, json.JSONDecodeError) else (1, 1, 0)
            )
            if kind == "vllm":
                msg = e.msg if isinstance(e, json.JSONDecodeError) else "not UTF-8"
                extra = f", 'ctx': {{'error': '{msg}'}}"
                raise vllm_invalid(
                    f"body.{pos}", "json_invalid", "JSON decode error", "'<dict of 0 items>'", extra
                ) from None
            raise llama_error(
                400,
                f"[json.exception.parse_error.101] parse error at line {line}, column {column}: syntax error "
                "while parsing value - unexpected end of input; expected '[', '{', or a literal",
            ) from None
    if not isinstance(body, dict):
        if kind == "vllm":
            raise vllm_invalid("body", "model_attributes_type", "Input should be an object", "'...'")
        raise llama_error(400, "Request body must be a JSON object")
    return body


def parse(
    kind: str, data: bytes, *, chat: bool, model: str, context: int, content_type: str, request_id: str | None
) -> GenRequest:
    """The request in `data`; raises Refusal as the server of this kind would."""
    if kind == "vllm" and content_type.split(";")[0].strip().lower() != "application/json":
        raise vllm_error(
            400,
            "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed",
            "Bad Request",
        )
    body = load_json(kind, data)
    try:
        return _parse(kind, body, chat, model, context, request_id)
    except (TypeError, ValueError, OverflowError, AttributeError, KeyError) as e:
        # A value of a type that no capture shows; the real wordings differ from case to case.
        if kind == "vllm":
            raise vllm_error(400, f"1 validation error:\n  {e}", "Bad Request") from None
        raise llama_error(400, f"[json.exception.type_error.302] {e}") from None


def _parse(
    kind: str, body: dict[str, Any], chat: bool, model: str, context: int, request_id: str | None
) -> GenRequest:
    check = _check_vllm if kind == "vllm" else _check_llama
    limit = check(body, chat, model, context)
    prompt = _prompt(body, chat)
    if kind == "vllm":
        if not prompt:
            raise vllm_error(
                400,
                "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)",
                param="prompt",
            )
        if len(prompt) > context:
            raise vllm_error(
                400,
                f"This model's maximum context length is {context} tokens. However, your prompt contains "
                f"at least {context + 1} input tokens, which exceeds this limit even without any output "
                "tokens. Please reduce the length of the input prompt. "
                f"(parameter=input_tokens, value={context + 1})",
                param="input_tokens",
            )
    elif len(prompt) >= context:
        raise llama_error(
            400,
            f"request ({len(prompt)} tokens) exceeds the available context size ({context} tokens), "
            "try increasing it",
            "exceed_context_size_error",
            n_prompt_tokens=len(prompt),
            n_ctx=context,
        )
    options = body.get("stream_options") or {}
    template = body.get("chat_template_kwargs") or {}
    logprobs = body.get("logprobs")
    room = max(1, context - len(prompt))
    stream = bool(body.get("stream"))
    return GenRequest(
        chat=chat,
        prompt=prompt,
        max_tokens=min(limit, room) if prompt else 0,
        stream=stream,
        n=max(1, int(body.get("n") or 1)),
        seed=int(body.get("seed") or 0),
        ignore_eos=bool(body.get("ignore_eos")),
        min_tokens=int(body.get("min_tokens") or 0) if kind == "vllm" else 0,
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        return_token_ids=bool(body.get("return_token_ids")),
        timings_per_token=bool(body.get("timings_per_token")),
        return_progress=bool(body.get("return_progress")) and stream,
        reuse=body.get("cache_prompt", True) is not False,
        thinking=bool(template.get("enable_thinking")) and chat,
        logprobs=None if not logprobs else int(body.get("top_logprobs") or 0) if chat else int(logprobs),
        request_id=request_id,
        body=body,
    )


def _check_vllm(body: dict[str, Any], chat: bool, model: str, context: int) -> int:
    needed = "messages" if chat else "prompt"
    if needed not in body and chat:
        raise vllm_invalid(f"body.{needed}", "missing", "Field required", f"'<dict of {len(body)} items>'")
    limit: int | None = None
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, str) and not value.lstrip("-").isdigit():
            raise vllm_invalid(
                f"body.{name}",
                "int_parsing",
                "Input should be a valid integer, unable to parse string as an integer",
                repr(value),
            )
        limit = int(value)
    if body.get("stream_options") and not body.get("stream"):
        raise vllm_error(
            400,
            "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
            param="stream_options",
        )
    asked = body.get("model")
    if asked and asked != model:
        raise vllm_error(
            404, f"The model `{asked}` does not exist. Valid aliases: {model}.", "NotFoundError", "model"
        )
    if chat and not body["messages"]:
        raise vllm_error(
            400, "Cannot apply chat template to an empty conversation. Provide at least one message."
        )
    if limit is not None and limit > context:
        raise vllm_error(
            400,
            f"max_tokens={limit} cannot be greater than max_model_len={context}. Please request fewer output "
            f"tokens. (parameter=max_tokens, value={limit})",
            param="max_tokens",
        )
    if limit is not None and limit < 1:
        raise vllm_error(
            400,
            f"max_tokens must be at least 1, got {limit}. (parameter=max_tokens, value={limit})",
            param="max_tokens",
        )
    temperature = float(body.get("temperature") or 0)
    if temperature < 0:
        raise vllm_error(
            400,
            f"temperature must be non-negative, got {temperature}. "
            f"(parameter=temperature, value={temperature})",
            param="temperature",
        )
    if limit is None:
        return context if chat else 16
    return limit


def _check_llama(body: dict[str, Any], chat: bool, model: str, context: int) -> int:
    if chat and "messages" not in body:
        raise llama_error(400, "'messages' is required")
    if not chat and "prompt" not in body:
        raise llama_error(400, "'prompt' is required")
    limit = -1
    for name in ("n_predict", "max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if value is None:
            continue
        if not isinstance(value, (int, float)):
            shown = {str: "string", bool: "boolean", list: "array", dict: "object"}.get(type(value), "null")
            raise llama_error(
                400, f"Field '{name}': [json.exception.type_error.302] type must be number, but is {shown}"
            )
        if value < -1:
            raise llama_error(
                400, f"Field '{name}': Value must be between -1 <= value <= 2147483647, but got {int(value)}"
            )
        limit = int(value)
    return context if limit < 0 else max(1, limit)


def _prompt(body: dict[str, Any], chat: bool) -> tuple[int, ...]:
    if chat:
        messages = [m for m in body["messages"] if isinstance(m, dict)]
        return tuple(tokenize(chat_prompt(messages), special=True))
    prompt = body.get("prompt", "")
    if isinstance(prompt, list):
        if all(isinstance(p, int) for p in prompt):
            return tuple(prompt)
        prompt = "".join(p if isinstance(p, str) else detokenize(p) for p in prompt)
    return tuple(tokenize(content_text(prompt), special=True))
