"""Prompt: one input, the same for every engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent, before an engine puts it into its own request body.

    `pair` numbers the prompt within a run: requests of different engines with the same pair got the same
    text. `tokens` is the exact length as the server counts it, chat template included, where it was counted.
    `messages` is set for conversations from prompt files; without it the prompt is one user message with
    `text`. `output_tokens` overrides the run's answer length for this prompt. `traffic_class` is
    its kind where several are mixed. `follow_ups` are the user's further messages of a conversation, each
    sent after the answer to the one before.
    """

    pair: int
    text: str
    tokens: int | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    output_tokens: int | None = None
    traffic_class: str | None = None
    follow_ups: tuple[str, ...] = ()

    def as_messages(self) -> list[dict[str, Any]]:
        """The conversation for a chat endpoint."""
        if self.messages is not None:
            return list(self.messages)
        return [{"role": "user", "content": self.text}]
