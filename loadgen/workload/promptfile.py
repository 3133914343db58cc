"""Prompts from a person's file: JSONL, or a ShareGPT export.

JSONL has one object a line: `{"prompt": "..."}` or `{"messages": [{"role": ..., "content": ...}, ...]}`,
either with an optional `"output_tokens": N`. ShareGPT is one JSON array of
`{"conversations": [{"from": "human", "value": ...}, ...]}`: each conversation gives one prompt, everything up
to and including its first human turn.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from loadgen.workload.prompt import Prompt
from loadgen.workload.prompts import PromptError

_ROLES = {"human": "user", "user": "user", "system": "system", "gpt": "assistant", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class PromptFile:
    """What a file held. `sha256` is of its bytes: two runs with the same one had the same prompts."""

    prompts: list[Prompt]
    sha256: str


def read_prompts(path: Path) -> list[Prompt]:
    """All prompts of the file, `pair` being their place in it. Raises PromptError with the line number."""
    return read_prompt_file(path).prompts


def read_prompt_file(path: Path) -> PromptFile:
    """The same, with the file's sum. Raises PromptError."""
    try:
        data = path.read_bytes()
    except OSError as e:
        raise PromptError(f"the prompt file {path} cannot be read: {e.strerror or e}") from None
    body = data.removeprefix(b"\xef\xbb\xbf")
    prompts = _sharegpt(path, body) if body.lstrip()[:1] == b"[" else _jsonl(path, body)
    if not prompts:
        raise PromptError(f"the prompt file {path} holds no prompt")
    return PromptFile(prompts, hashlib.sha256(data).hexdigest())


def _jsonl(path: Path, data: bytes) -> list[Prompt]:
    prompts: list[Prompt] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as e:
            raise PromptError(f"{path}, line {number}: not valid JSON ({e})") from None
        try:
            prompts.append(_row(row, len(prompts)))
        except ValueError as e:
            raise PromptError(f"{path}, line {number}: {e}") from None
    return prompts


def _row(row: Any, pair: int) -> Prompt:
    if not isinstance(row, dict):
        raise ValueError('each line is an object like {"prompt": "..."}')
    output_tokens = row.get("output_tokens")
    if output_tokens is not None and (type(output_tokens) is not int or output_tokens < 1):
        raise ValueError("output_tokens is a whole number of at least 1")
    if "messages" in row:
        messages = row["messages"]
        good = isinstance(messages, list) and all(
            isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in messages
        )
        if not good or not messages:
            raise ValueError('messages is a list of {"role": ..., "content": ...}')
        text = "\n".join(m["content"] for m in messages if isinstance(m["content"], str))
        return Prompt(pair, text, messages=tuple(messages), output_tokens=output_tokens)
    if not isinstance(row.get("prompt"), str) or not row["prompt"]:
        raise ValueError('neither a "prompt" text nor "messages"')
    return Prompt(pair, row["prompt"], output_tokens=output_tokens)


def _sharegpt(path: Path, data: bytes) -> list[Prompt]:
    try:
        rows = orjson.loads(data)
    except orjson.JSONDecodeError as e:
        line = data[: e.pos].count(b"\n") + 1
        raise PromptError(f"{path}, line {line}: not valid JSON ({e})") from None
    prompts: list[Prompt] = []
    for number, row in enumerate(rows, start=1):
        turns = row.get("conversations") if isinstance(row, dict) else None
        if not isinstance(turns, list):
            raise PromptError(f"{path}, entry {number}: no list of conversations, so this is not ShareGPT")
        messages: list[dict[str, Any]] = []
        for turn in turns:
            role = _ROLES.get(turn.get("from", "")) if isinstance(turn, dict) else None
            if role is None or not isinstance(turn.get("value"), str):
                raise PromptError(f'{path}, entry {number}: a turn without "from" and "value"')
            messages.append({"role": role, "content": turn["value"]})
            if role == "user":
                text = "\n".join(m["content"] for m in messages)
                prompts.append(Prompt(len(prompts), text, messages=tuple(messages)))
                break
    return prompts
