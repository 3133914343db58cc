"""Workloads as data: the three of the reference experiment, and further ones.

A scenario only lends defaults: file, environment and flags win over it (see `loadgen.config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.workload.classes import MIX


@dataclass(frozen=True, slots=True)
class Scenario:
    """Defaults of one workload.

    `turn_requests` is N, the number of prompts of one turn on one engine; `prompt_tokens` counts the chat
    template in; `run_time_s` is the limit (seconds) that stops a run which nobody gave a limit, far beyond
    what the blocks need on a machine of ordinary speed, None where somebody stops it. `more` are further
    settings.
    """

    name: str
    title: str
    users: int
    prompt_tokens: int
    turn_requests: int
    output_tokens: int = 256
    blocks: int = 6
    run_time_s: int | None = 3600
    more: Mapping[str, Any] = field(default_factory=dict)

    def defaults(self) -> dict[str, Any]:
        """What this scenario lends to Settings."""
        return {
            "scenario": self.name,
            "users": self.users,
            "prompt_tokens": self.prompt_tokens,
            "turn_requests": self.turn_requests,
            "output_tokens": self.output_tokens,
            "blocks": self.blocks,
            **self.more,
        }


SINGLE_USER = Scenario("single_user", "one user, short prompt", users=1, prompt_tokens=50, turn_requests=8)
LONG_PROMPT = Scenario("long_prompt", "one user, long prompt", users=1, prompt_tokens=2000, turn_requests=6)
CONCURRENCY = Scenario("concurrency", "16 users at once", users=16, prompt_tokens=50, turn_requests=64)

MIXED = Scenario(
    "mixed",
    "a mix of classes of requests",
    users=8,
    prompt_tokens=200,
    turn_requests=100,
    more={"mix": MIX},
)
CHAT = Scenario(
    "chat",
    "conversations, with a warm cache",
    users=8,
    prompt_tokens=100,
    turn_requests=64,
    output_tokens=128,
    more={"exchanges": 4, "system_tokens": 500},
)
RAMP = Scenario(
    "ramp",
    "users that vary, by hand or by a shape",
    users=16,
    prompt_tokens=200,
    turn_requests=64,
    output_tokens=128,
    blocks=1,
    run_time_s=None,
    more={"shape": "hand"},
)

OPEN_LOOP = Scenario(
    "open_loop",
    "requests at a rate (--rate R)",
    users=1,
    prompt_tokens=50,
    turn_requests=100,
    more={"arrival": "poisson", "warmup_requests": 8},
)

_ALL = (SINGLE_USER, LONG_PROMPT, CONCURRENCY, MIXED, CHAT, OPEN_LOOP, RAMP)
SCENARIOS: dict[str, Scenario] = {s.name: s for s in _ALL}
REFERENCE: tuple[str, ...] = ("single_user", "long_prompt", "concurrency")
