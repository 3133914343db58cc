"""What both servers' answers have in common: the state of one answer, and pieces of bytes. Pure."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import orjson

from loadgen.sim.model import Job
from loadgen.sim.request import GenRequest
from loadgen.sim.tokens import EOS, is_half, token_bytes

MARK = "X-Loadgen-Simulated"  # the header that no real server sends
REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}


@lru_cache(maxsize=65536)
def json_text(text: str) -> bytes:
    """A JSON string, quotes included."""
    return orjson.dumps(text)


def new_id(prefix: str, length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    return prefix + "".join(random.choices(alphabet, k=length))


@dataclass(slots=True)
class Choice:
    """One of the n answers of a request, as far as it was sent."""

    index: int
    job: Job
    held: bytes = b""  # the first half of a character
    sent: int = 0  # tokens
    text: list[str] = field(default_factory=list)
    reasoning_until: int = 0  # tokens before this index are reasoning
    started: bool = False  # the role was sent

    def take(self, tokens: list[int]) -> str:
        """The text that these further tokens complete."""
        raw = self.held
        for t in tokens:
            if t != EOS:
                raw += token_bytes(t)
        self.held = b""
        if tokens and is_half(tokens[-1]):
            self.held = token_bytes(tokens[-1])
            raw = raw[: -len(self.held)]
        self.sent += len(tokens)
        return raw.decode("utf-8", "replace")

    @property
    def finished(self) -> bool:
        return self.sent >= len(self.job.output)

    @property
    def finish_reason(self) -> str:
        return "stop" if self.job.output and self.job.output[-1] == EOS else "length"


@dataclass(slots=True)
class Answer:
    """One completion under way."""

    request: GenRequest
    id: str
    created: int
    model: str
    choices: list[Choice]
    tools: bool = False  # the text goes out as a tool call's arguments

    def output_tokens(self) -> int:
        return sum(c.sent for c in self.choices)


Payloads = list[bytes]  # JSON texts (or b"[DONE]") that share one HTTP chunk

# The chunks before a token's own, the token's (None: it has no event), and those after it.
TokenChunks = tuple[list[Payloads], Payloads | None, list[Payloads]]


class Dialect(Protocol):
    """How one server speaks. All methods are pure; a list of Payloads is one HTTP chunk each."""

    kind: str
    keeps_connection: bool
    head_at_once: bool

    def head(self, status: int, *, stream: bool, close: bool, length: int | None = None) -> bytes: ...
    def new_id(self, request: GenRequest) -> str: ...
    def on_slot(self, a: Answer, c: Choice) -> list[Payloads]: ...
    def on_progress(self, a: Answer, c: Choice, done: int, ms: float) -> list[Payloads]: ...
    def on_tokens(self, a: Answer, c: Choice, tokens: list[int]) -> TokenChunks: ...
    def on_end(self, a: Answer) -> list[Payloads]: ...
    def on_failure(self, message: str, status: int) -> list[Payloads]: ...
    def whole(self, a: Answer) -> bytes: ...
