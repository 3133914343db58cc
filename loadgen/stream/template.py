"""The fast path: most events of a stream differ in one JSON string only.

From one fully parsed event a template is learned: the bytes before and after the string literal that holds
the generated text. A later event that has the same bytes before and after, and between them only characters
that JSON and SSE take as they are, is the same object with another text: no need to parse it. What does not
fit is parsed in full. The template is proved, not guessed: the event is decoded again with other texts in
the same place, and everything but the text must come out unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import orjson

from loadgen.engines.chunk import Chunk

# Printable ASCII without '"' and '\': inside a JSON string each stands for itself, none ends an SSE line.
is_plain = re.compile(rb"[ !#-\[\]-~]*").fullmatch
_PROBE = "loadgen probe"
_MAX_CANDIDATES = 8


class TextTemplate:
    """The bytes around the text, of an event (`match`) and of an HTTP chunk that is one event.

    Plain prefix and suffix tests: compiling a pattern for each stream would cost more than it saves.
    """

    __slots__ = ("_heads", "_prefix", "_suffix", "chunk_suffix", "reasoning")

    def __init__(self, prefix: bytes, suffix: bytes, reasoning: bool) -> None:
        self._prefix = prefix
        self._suffix = suffix
        self._heads: dict[int, bytes] = {}
        self.chunk_suffix = suffix + b"\r\n"
        self.reasoning = reasoning

    def match(self, event: bytes) -> bytes | None:
        """The text of exactly one event (its bytes on the wire) of this template, else None."""
        start, end = len(self._prefix), len(event) - len(self._suffix)
        if (
            start <= end
            and event.startswith(self._prefix)
            and event.endswith(self._suffix)
            and is_plain(text := event[start:end])
        ):
            return text
        return None

    def chunk_heads(self) -> dict[int, bytes]:
        """Length of an HTTP chunk (size line and CRLFs included) -> how such a chunk must begin, as far as
        `chunk_head` has been asked."""
        return self._heads

    def chunk_head(self, length: int) -> bytes:
        """How an HTTP chunk of `length` bytes in all must begin to be one event of this template.

        The size line is what servers write: lower-case hexadecimal without zeros in front. An impossible
        length gives bytes that no chunk begins with.
        """
        head = b"\n"
        for digits in range(1, 9):
            size = length - digits - 4  # the digits, CRLF after them, CRLF at the end
            if size >= len(self._prefix) + len(self._suffix) and len(line := b"%x" % size) == digits:
                head = line + b"\r\n" + self._prefix
                break
        self._heads[length] = head
        return head

    def same_prefix(self, event: bytes) -> bool:
        """True when only the text (or what follows it) did not fit: nothing to learn from this one."""
        return event.startswith(self._prefix)


def learn(segment: bytes, data: bytes, chunk: Chunk, decode: Callable[[bytes], Chunk]) -> TextTemplate | None:
    """A template from `segment`, the bytes of exactly one SSE event whose data is `data` and meaning `chunk`.

    None when the event says more than text (finish, usage, counts, error), when its text needs escapes,
    or when no place in it can be proved to be the text's.
    """
    text = chunk.answer or chunk.reasoning
    if not text or not _only_text(chunk) or not text.isascii() or segment.count(data) != 1:
        return None
    literal = orjson.dumps(text)
    if literal[1:-1] != text.encode():
        return None
    field = "answer" if chunk.answer else "reasoning"
    at = data.find(literal)
    for _ in range(_MAX_CANDIDATES):
        if at < 0:
            return None
        head, tail = data[: at + 1], data[at + len(literal) - 1 :]
        if text != _PROBE and _is_chunk_with(head, tail, _PROBE, chunk, field, decode):
            start = segment.index(data)
            return TextTemplate(
                segment[:start] + head, tail + segment[start + len(data) :], field != "answer"
            )
        at = data.find(literal, at + 1)
    return None


def _only_text(chunk: Chunk) -> bool:
    return (
        not (chunk.answer and chunk.reasoning)
        and not chunk.tool_text
        and chunk.finish_reason is None
        and chunk.usage is None
        and chunk.timings is None
        and chunk.output_tokens_so_far is None
        and chunk.new_tokens is None
        and chunk.error is None
    )


def _is_chunk_with(
    head: bytes, tail: bytes, text: str, chunk: Chunk, field: str, decode: Callable[[bytes], Chunk]
) -> bool:
    try:
        probe = decode(head + text.encode() + tail)
    except ValueError:
        return False
    if getattr(probe, field) != text:
        return False
    setattr(probe, field, getattr(chunk, field))
    return probe == chunk
