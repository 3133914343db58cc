"""Chunk: what one SSE data event of a completion stream says, whoever the server is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Usage:
    """Token counts as a server reports them; None where it does not."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(slots=True)
class Chunk:
    """One decoded event.

    `answer`, `reasoning` and `tool_text` are generated text; an event is text-bearing when any of them is
    not empty. `output_tokens_so_far` is the server's own exact count up to and including this event, where
    it gives one (llama.cpp `timings.predicted_n`, vLLM continuous usage or token ids).
    `usage` is set on any event that carries usage; `choice` is the index of the choice that the event
    belongs to, None for the summary event with `choices: []`.
    """

    choice: int | None = None
    answer: str = ""
    reasoning: str = ""
    tool_text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: dict[str, Any] | None = None
    output_tokens_so_far: int | None = None
    new_tokens: int | None = None
    error: str | None = None
    response_id: str | None = None

    @property
    def has_text(self) -> bool:
        return bool(self.answer or self.reasoning or self.tool_text)
