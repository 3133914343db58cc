"""The simulated engines' tokenizer: deterministic, reversible, without a vocabulary file.

A token is a word piece of at most five ASCII letters with the space before it attached, one digit, one
punctuation mark, one white-space character, a special token of the chat template, or a character beyond
ASCII. A character outside the basic plane (most emoji) is two tokens of half a character each, so that
clients meet tokens without complete text, as they do with real byte-level tokenizers.

The id says what the token is (see the ranges below), so that ids turn back into text without a table and
are the same in every process. tokenize(text) then detokenize gives back `text` for any text that UTF-8 can
hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

SPECIAL = {"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2}
SPECIAL_TEXT = {v: k for k, v in SPECIAL.items()}
EOS = SPECIAL["<|im_end|>"]

# Ranges of ids. Letters are base-53 digits (1-52, 0 = no more), 53**5 < 2**29; +_SPACE: a space before it.
_CHAR = 1_000  # one character that is not a letter: id = _CHAR + code point (at most 0x10FFFF)
_SPACE_CHAR = 2_000_000  # the same with a space before it
_PHRASE = 3_500_000  # a whole phrase in one token (only answers have such): id = _PHRASE + index
_HALF = (
    4_000_000  # half of a four-byte character: id = _HALF + 2 * (its two bytes, big-endian) + (1 if second)
)
_WORD = 5_000_000
_SPACE_WORD = _WORD + 53**5

# Text that looks like the protocol, for clients that search bytes where they should parse.
PHRASES = (
    ' "usage":{"prompt_tokens":1,"completion_tokens":999}',
    ' "content":"not this"',
    ' {"choices":[],"usage":{}}',
    ' a \\"quoted\\" \\\\ path\\n',
    "\n\ndata: [DONE]\n\n",
    " line\u2028separator\u2029next\u0085line",
    " tab\there \b\f \x00 bell",
    ' "finish_reason":"stop"',
    ' "error":{"message":"no"}',
    " </script><b>&amp;",
    ' \\u0041 "delta":{"content":""}',
)
PHRASE_TOKENS = tuple(_PHRASE + i for i in range(len(PHRASES)))

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGIT = {c: i + 1 for i, c in enumerate(_LETTERS)}
_PIECES = re.compile(r" ?[A-Za-z]{1,5}| ?[^A-Za-z0-9\s]|[0-9]|\s", re.ASCII)
_SPECIAL_SPLIT = re.compile("(" + "|".join(re.escape(s) for s in SPECIAL) + ")")


@lru_cache(maxsize=65536)
def _piece_ids(piece: str) -> tuple[int, ...]:
    spaced = len(piece) > 1 and piece[0] == " "
    body = piece[1:] if spaced else piece
    if body[0] in _DIGIT:
        n = 0
        for c in reversed(body):
            n = n * 53 + _DIGIT[c]
        return ((_SPACE_WORD if spaced else _WORD) + n,)
    code = ord(body)
    if code < 0x10000:
        return ((_SPACE_CHAR if spaced else _CHAR) + code,)
    raw = body.encode("utf-8")
    halves = tuple(_HALF + 2 * int.from_bytes(raw[i : i + 2], "big") + i // 2 for i in (0, 2))
    return ((_CHAR + 0x20, *halves)) if spaced else halves


def tokenize(text: str, *, special: bool = False) -> list[int]:
    """The token ids of `text`; with `special` the template's marks are one token each, else plain text."""
    ids: list[int] = []
    parts = _SPECIAL_SPLIT.split(text) if special else (text,)
    for part in parts:
        if special and part in SPECIAL:
            ids.append(SPECIAL[part])
        else:
            for piece in _PIECES.findall(part):
                ids.extend(_piece_ids(piece))
    return ids


@lru_cache(maxsize=65536)
def token_bytes(token: int) -> bytes:
    """What one token adds to the text, in UTF-8; half a character for the tokens that are one.

    An id that the tokenizer never gives becomes a replacement character.
    """
    if token in SPECIAL_TEXT:
        return SPECIAL_TEXT[token].encode()
    if token >= _WORD:
        spaced = token >= _SPACE_WORD
        n = token - (_SPACE_WORD if spaced else _WORD)
        letters = []
        while n and n % 53:
            letters.append(_LETTERS[n % 53 - 1])
            n //= 53
        return ((" " if spaced else "") + "".join(letters)).encode()
    if token >= _HALF:
        return (((token - _HALF) // 2) & 0xFFFF).to_bytes(2, "big")
    if token >= _PHRASE:
        i = token - _PHRASE
        return PHRASES[i].encode() if i < len(PHRASES) else "\ufffd".encode()
    spaced = token >= _SPACE_CHAR
    code = token - (_SPACE_CHAR if spaced else _CHAR)
    if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
        return "\ufffd".encode()
    return ((" " if spaced else "") + chr(code)).encode()


def is_half(token: int) -> bool:
    """Whether the token leaves a character unfinished (its text comes with the next token)."""
    return _HALF <= token < _WORD and (token - _HALF) % 2 == 0


def detokenize(tokens: Iterable[int]) -> str:
    return b"".join(map(token_bytes, tokens)).decode("utf-8", "replace")


def pieces(tokens: Sequence[int]) -> list[str]:
    """The text that each token completes: "" for a first half, the whole character at the second."""
    out: list[str] = []
    held = b""
    for token in tokens:
        if is_half(token):
            held = token_bytes(token)
            out.append("")
        else:
            out.append((held + token_bytes(token)).decode("utf-8", "replace"))
            held = b""
    return out


SYSTEM = "You are a helpful assistant in a simulation of an engine"


def chat_prompt(messages: Sequence[dict[str, object]], *, generate: bool = True) -> str:
    """The text that the chat template makes of a conversation (ChatML, with a system line of its own).

    24 tokens come before the first user message and 6 after it, like SmolLM2's template.
    """
    text = ""
    if messages and messages[0].get("role") != "system":
        text = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
    for m in messages:
        text += f"<|im_start|>{m.get('role', 'user')}\n{content_text(m.get('content'))}<|im_end|>\n"
    return text + ("<|im_start|>assistant\n" if generate else "")


def content_text(content: object) -> str:
    """A message's text: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return ""
