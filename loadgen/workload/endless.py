"""Prompts without end, for turns of which nobody knows how many requests they will have.

A pool of prompts is gone through again and again, each time with a new salt at the beginning, so no prefix
cache can know it. The same `key` gives the same prompts: every engine gets those of a block, in one order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from loadgen.workload.prompt import Prompt
from loadgen.workload.salt import salts

BLOCK = 10_000_000  # prompt numbers of a block: more requests than a turn has


@dataclass(frozen=True, slots=True)
class Endless:
    """`key` determines the salts; None: the pool's texts as they are. Of several processes each takes every
    `step`-th prompt from `start` on, with a key of its own. `first_pair` is the first prompt's number."""

    pool: tuple[Prompt, ...]
    key: str | None
    first_pair: int = 0
    start: int = 0
    step: int = 1

    def __iter__(self) -> Iterator[Prompt]:
        own = salts(self.key) if self.key is not None else None
        for n in itertools.count(self.start, self.step):
            prompt = self.pool[n % len(self.pool)]
            if own is not None:
                prompt = resalted(prompt, own)
            yield replace(prompt, pair=self.first_pair + n)

    def share(self, start: int, step: int, name: str) -> Endless:
        """The part of one of several processes."""
        return replace(self, key=None if self.key is None else f"{self.key}/{name}", start=start, step=step)


def resalted(prompt: Prompt, new: Iterator[str]) -> Prompt:
    """The same prompt with another salt before its text, and before each question of a conversation; a
    system prompt stays, since it is what a conversation shares with others."""
    old, fresh = prompt.text.partition(" ")[0], next(new)
    messages = None
    if prompt.messages is not None:
        messages = tuple(_with_salt(m, old, fresh) for m in prompt.messages)
    return replace(
        prompt,
        text=_resalt(prompt.text, fresh),
        tokens=None,
        messages=messages,
        follow_ups=tuple(_resalt(t, next(new)) for t in prompt.follow_ups),
    )


def _with_salt(message: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """The message, its text with the new salt if it begins with the old one."""
    content = message.get("content")
    if isinstance(content, str) and content.partition(" ")[0] == old:
        return {**message, "content": _resalt(content, new)}
    if isinstance(content, list):
        return {**message, "content": [_part_with_salt(part, old, new) for part in content]}
    return message


def _part_with_salt(part: Any, old: str, new: str) -> Any:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str) and text.partition(" ")[0] == old:
        return {**part, "text": _resalt(text, new)}
    return part


def _resalt(text: str, salt: str) -> str:
    """The text's first word is its old salt."""
    _, space, rest = text.partition(" ")
    return f"{salt}{space}{rest}"
