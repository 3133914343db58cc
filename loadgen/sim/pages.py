"""What the pages beside the completions have in common: what they know, and what they give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from loadgen.sim.errors import Refusal
from loadgen.sim.metrics import Counters, Gauges
from loadgen.sim.model import Scheduler


@dataclass
class View:
    """What the pages tell of."""

    scheduler: Scheduler
    model: str
    preset: str
    speed: float
    started: int  # wall seconds
    counters: Counters = field(default_factory=Counters)
    gauges: Gauges = field(default_factory=Gauges)
    load: int = 0  # requests being answered

    @property
    def simulated(self) -> dict[str, Any]:
        return {"preset": self.preset, "speed": self.speed}


@dataclass(frozen=True)
class Page:
    """A body with its content type; None stands for the server's usual JSON type."""

    body: bytes
    content_type: str | None = None
    empty: bool = False  # vLLM's /health: neither body nor content type
    process_start: int | None = None  # llama-server's /metrics has a header of that name


Get = Callable[[View], Page]
Post = Callable[[dict[str, Any], View], Page]


def json_page(data: Any) -> Page:
    return Page(orjson.dumps(data))


def token_list(body: dict[str, Any]) -> list[int]:
    """The tokens to detokenize; Refusal when they are none."""
    tokens = body.get("tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(t, int) for t in tokens):
        error = {"code": 400, "message": "tokens must be integers", "type": "invalid_request_error"}
        raise Refusal(400, {"error": error})
    return tokens
