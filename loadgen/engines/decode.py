"""decode_chunk: one SSE data event of any OpenAI-like server as a Chunk. Pure.

One decoder serves all dialects, since none of them contradicts another:

- chat: `choices[].delta` with content, reasoning or reasoning_content, tool_calls, refusal
- completions: `choices[].text`
- vLLM: `usage` beside choices (continuous usage), `token_ids`
- llama.cpp: `timings`, progress events (a delta without text), and its own `/completion` (`content`, `stop`)
- errors inside a 200, in the shapes of `errors.error_in`
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from .chunk import Chunk, Usage
from .errors import clean, error_in


def decode_chunk(data: bytes) -> Chunk:
    """The Chunk of one event's data (not of `[DONE]`, which is the caller's).

    ValueError if `data` is not a JSON object, or not one that a completion stream can hold.
    """
    event = _load(data)
    if not isinstance(event, dict):
        raise ValueError(f"an event that is not a JSON object: {clean(repr(data[:80]), 100)}")
    chunk = Chunk()
    choices = event.get("choices")
    if choices:
        if not isinstance(choices, list):
            raise ValueError("choices is not a list")
        for choice in choices:
            if not isinstance(choice, dict):
                raise ValueError("a choice is not an object")
            _add_choice(chunk, choice)
    elif choices is None and "content" in event and "stop" in event:
        _add_native(chunk, event)
    response_id = event.get("id")
    if isinstance(response_id, str):
        chunk.response_id = response_id[:128]
    usage = event.get("usage")
    if isinstance(usage, dict):
        chunk.usage = _usage(usage)
        if chunk.choice is not None:
            chunk.output_tokens_so_far = chunk.usage.output_tokens
    timings = event.get("timings")
    if isinstance(timings, dict):
        chunk.timings = timings
        predicted = count(timings.get("predicted_n"))
        if predicted is not None and chunk.choice is not None:
            chunk.output_tokens_so_far = predicted
    if "error" in event or event.get("object") == "error":
        chunk.error = error_in(event)
    return chunk


def count(value: Any) -> int | None:
    """A number of tokens as servers write it, or None if it is none (null, negative, a text)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 2**53 else None
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    return None


def _load(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except ValueError:
        pass
    # What orjson refuses and other servers may send: NaN, half a surrogate pair, bytes that are not UTF-8.
    try:
        event = json.loads(data.decode("utf-8", "replace"))
        # Halves of pairs must not get further, since nothing could write them.
        return json.loads(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("an event nested too deeply") from None
    except ValueError as e:
        raise ValueError(f"an event that is not JSON ({e}): {clean(repr(data[:80]), 100)}") from None


def _add_choice(chunk: Chunk, choice: dict[str, Any]) -> None:
    index = choice.get("index")
    if chunk.choice is None:
        chunk.choice = index if isinstance(index, int) else 0
    delta = choice.get("delta")
    if delta is None:
        delta = choice.get("message")
    if isinstance(delta, dict):
        content = delta.get("content")
        if content:
            chunk.answer += content if isinstance(content, str) else _parts(content)
        # Some servers send the same text under both names.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str):
            chunk.reasoning += reasoning
        refusal = delta.get("refusal")
        if isinstance(refusal, str):
            chunk.answer += refusal
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                if isinstance(call, dict):
                    chunk.tool_text += _call_text(call.get("function"))
        chunk.tool_text += _call_text(delta.get("function_call"))
    text = choice.get("text")
    if isinstance(text, str):
        chunk.answer += text
    finish = choice.get("finish_reason")
    if finish and isinstance(finish, str):
        chunk.finish_reason = finish[:64]
    ids = choice.get("token_ids")
    if isinstance(ids, list):
        chunk.new_tokens = (chunk.new_tokens or 0) + len(ids)


def _parts(content: Any) -> str:
    """Content as a list of `{"type": "text", "text": ...}`."""
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _call_text(function: Any) -> str:
    if not isinstance(function, dict):
        return ""
    return "".join(v for v in (function.get("name"), function.get("arguments")) if isinstance(v, str))


def _usage(usage: dict[str, Any]) -> Usage:
    details = usage.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cached_tokens=cached,
    )


_STOP_TYPES = {"limit": "length", "eos": "stop", "word": "stop"}


def _add_native(chunk: Chunk, event: dict[str, Any]) -> None:
    """llama.cpp's own /completion: counts in every event, the stop in the last."""
    index = event.get("index")
    chunk.choice = index if isinstance(index, int) else 0
    if isinstance(event["content"], str):
        chunk.answer = event["content"]
    chunk.output_tokens_so_far = count(event.get("tokens_predicted"))
    tokens = event.get("tokens")
    if isinstance(tokens, list) and tokens:
        chunk.new_tokens = len(tokens)
    if event["stop"] is True:
        chunk.finish_reason = _STOP_TYPES.get(str(event.get("stop_type")), "stop")
        chunk.usage = Usage(count(event.get("tokens_evaluated")), chunk.output_tokens_so_far)
