"""What an engine says about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal


@dataclass(slots=True)
class EngineInfo:
    """One endpoint as identified. Texts come from the server and are bounded in length.

    `context` is how many tokens, prompt and answer together, one request may take; `slots` how many requests
    llama.cpp computes at once (None: the server does not say, as vLLM); `total_context` how many tokens the
    KV cache holds for all requests. `prefix_cache` is None where the server does not say. `facts` holds
    whatever else belongs into a manifest; `notes` are sentences that a person should read.
    """

    name: str
    kind: str
    url: str
    server: str
    version: str | None = None
    model: str | None = None
    models: tuple[str, ...] = ()
    context: int | None = None
    slots: int | None = None
    total_context: int | None = None
    prefix_cache: bool | None = None
    simulated: bool = False
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "models": list(self.models)}


HealthState = Literal["ready", "loading", "unreachable", "error"]


@dataclass(frozen=True, slots=True)
class Health:
    """`text` is one sentence for a person, empty when the engine is ready; `reason` as in EngineError."""

    state: HealthState
    text: str = ""
    reason: str = ""

    @property
    def ready(self) -> bool:
        return self.state == "ready"


@dataclass(frozen=True, slots=True)
class CacheCounters:
    """Prompt tokens since the server started: looked up in its prefix cache, and found there."""

    queried: int
    hit: int

    def since(self, before: CacheCounters) -> CacheCounters:
        return CacheCounters(self.queried - before.queried, self.hit - before.hit)
