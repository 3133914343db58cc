"""The unique beginning of a prompt, so that no prefix cache can know it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # 32 letters without the look-alikes l, o, 0 and 1
_LENGTH = 8


def salts(run_salt: str) -> Iterator[str]:
    """Endless salts like `q7xk29fd:`, none of them twice; 40 bits that `run_salt` determines.

    `run_salt` must be new for every run: a server may still hold the prompts of the last one.
    """
    used: set[str] = set()
    number = 0
    while True:
        digest = hashlib.blake2b(f"{run_salt}/{number}".encode(), digest_size=_LENGTH).digest()
        number += 1
        salt = "".join(_ALPHABET[b % 32] for b in digest) + ":"
        if salt not in used:
            used.add(salt)
            yield salt


def salted_messages(messages: tuple[dict[str, Any], ...], salt: str) -> tuple[dict[str, Any], ...]:
    """The conversation with the salt at the start of its first text, as early as a template allows.

    Contents are strings or OpenAI's lists of parts; a conversation without any text gets the salt as a
    first system message.
    """
    out = [dict(m) for m in messages]
    for message in out:
        content = message.get("content")
        if isinstance(content, str):
            message["content"] = f"{salt} {content}"
            return tuple(out)
        if isinstance(content, list):
            parts = [dict(p) if isinstance(p, dict) else p for p in content]
            for part in parts:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    part["text"] = f"{salt} {part['text']}"
                    message["content"] = parts
                    return tuple(out)
    return ({"role": "system", "content": salt}, *out)
