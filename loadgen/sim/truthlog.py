"""The truth about every simulated request: one JSON line each, for comparing what a client measured.

    {"id", "kind", "recv_ns", "head_ns", "first_ns", "last_ns", "t_us": [...], "tokens", "outcome", ...}

`id` is the response's id. Times are CLOCK_REALTIME nanoseconds, taken just before the write: recv when the
request had been read, head for the response head, first and last for events of tokens. `t_us` are
microseconds since recv, one for each token, in the order sent (tokens of one event share its time, a token
that had no event of its own the time at which it was due). `outcome` is completed, client_gone, fault
(a fault ended the answer), failed (memory was full), refused (an error status) or open (the server stopped).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass(slots=True)
class Truth:
    """One request, as it goes."""

    kind: str
    recv_ns: int  # wall
    recv_mono_ns: int
    id: str | None = None
    head_ns: int | None = None
    mono_ns: list[int] = field(default_factory=list)
    status: int = 200
    outcome: str = "open"
    faults: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    cached_tokens: int = 0
    stream: bool = False

    def head(self, mono_ns: int) -> None:
        self.head_ns = self.recv_ns + mono_ns - self.recv_mono_ns

    def to_json(self) -> bytes:
        since = [t - self.recv_mono_ns for t in self.mono_ns]
        row: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind,
            "recv_ns": self.recv_ns,
            "head_ns": self.head_ns,
            "first_ns": self.recv_ns + since[0] if since else None,
            "last_ns": self.recv_ns + since[-1] if since else None,
            "tokens": len(since),
            "outcome": self.outcome,
            "status": self.status,
            "stream": self.stream,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "faults": self.faults,
            "t_us": [t // 1000 for t in since],
        }
        return orjson.dumps(row) + b"\n"


class TruthLog:
    """Appends lines to a file; does nothing without one."""

    def __init__(self, path: str | None) -> None:
        self._fd = -1
        if path:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, truth: Truth) -> None:
        if self._fd >= 0:
            os.write(self._fd, truth.to_json())

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
