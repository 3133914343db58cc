"""Stand-ins for an engine and a record, for tests without a server."""

from __future__ import annotations

from typing import Any

from loadgen.config import EngineSpec
from loadgen.engines import CacheCounters, EngineError, EngineInfo, Health
from loadgen.record import RequestRecord
from loadgen.users.lane import Lane
from loadgen.workload.prompt import Prompt


class FakeEngine:
    """Counts four characters and a template of 20 as its tokens."""

    path = "/v1/chat/completions"
    kind = "vllm"
    counting = "tokenizer"

    def __init__(self, name: str = "a", *, dead: str = "", tokens: bool = True, **spec: Any) -> None:
        self.spec = EngineSpec(name=name, kind="vllm", url="http://127.0.0.1:9", **spec)
        self.name = name
        self.model = "m"
        self.dead = dead
        self.closed = False
        if not tokens:
            self.counting = "none"

    def health(self) -> Health:
        return (
            Health("unreachable", f"engine {self.name}: {self.dead}", "unreachable")
            if self.dead
            else Health("ready")
        )

    def identify(self) -> EngineInfo:
        return EngineInfo(self.name, "vllm", self.spec.url, server="vLLM", model="m", context=4096)

    def count_tokens(self, prompt: Prompt) -> int | None:
        return 20 + len(prompt.text) // 4

    def request_body(self, prompt: Prompt, model: str | None, *, output_tokens: int) -> bytes:
        return f"{model}:{prompt.pair}:{output_tokens}".encode()

    def http_error_text(self, status: int, body: bytes) -> str:
        return f"HTTP {status}"

    def cache_counters(self, text: str | None = None) -> CacheCounters | None:
        if self.dead:
            raise EngineError(self.dead, "unreachable")
        return None

    def close(self) -> None:
        self.closed = True


def lane(name: str = "a", **options: Any) -> Lane:
    return Lane(FakeEngine(name, **options))  # type: ignore[arg-type]


def record(**fields: Any) -> RequestRecord:
    defaults = {"sent_ns": 1_000, "ttft_ms": 10.0, "e2e_ms": 50.0, "complete_ms": 51.0, "output_tokens": 8}
    return RequestRecord(**{**defaults, **fields})
