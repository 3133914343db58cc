"""Locust users for LLM servers, and the director that lets the engines take turns.

A locustfile is a subclass with a scenario:

    from loadgen.users import LlmUser, Scenario

    class Chatty(LlmUser):
        scenario = Scenario("chatty", "32 users", users=32, prompt_tokens=400, turn_requests=96)
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from loadgen.users import hooks as _hooks  # noqa: F401  (listens to Locust's events)
from loadgen.users.user import LlmUser
from loadgen.workload.scenarios import (
    CHAT,
    CONCURRENCY,
    LONG_PROMPT,
    MIXED,
    OPEN_LOOP,
    RAMP,
    SINGLE_USER,
    Scenario,
)

__all__ = [
    "CHAT",
    "CONCURRENCY",
    "LONG_PROMPT",
    "MIXED",
    "OPEN_LOOP",
    "RAMP",
    "SINGLE_USER",
    "LlmUser",
    "Scenario",
]
