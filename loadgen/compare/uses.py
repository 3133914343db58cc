"""What a workload stands for, and the figures that decide it: fixed beforehand, not found in the results."""

from __future__ import annotations

from dataclasses import dataclass

LONG_FROM = 1000  # prompt tokens


@dataclass(frozen=True, slots=True)
class Use:
    """`figures` are the headline figures of the use, the most important first."""

    name: str
    title: str
    figures: tuple[str, ...]

    def load(self, users: int | None, prompt_tokens: float | None, rate: float | None = None) -> str:
        """The load in a few words: what makes it this use."""
        if self.name == "open":
            return f"{rate:g} requests a second" if rate else ""
        if self.name == "many" and users:
            return f"{users:,} users"
        if self.name == "long" and prompt_tokens:
            return f"{prompt_tokens:,.0f} prompt tokens"
        return ""


SINGLE = Use("single", "one user, interactive", ("ttft_ms", "decode_tokens_per_s"))
LONG = Use("long", "long context", ("ttft_ms", "decode_tokens_per_s"))
MANY = Use("many", "many users at once", ("throughput_tokens_per_s", "ttft_ms", "e2e_ms"))
OPEN = Use("open", "requests at a rate", ("scheduled_ttft_ms", "scheduled_e2e_ms"))
MEMORY = Use("memory", "little memory", ("least_needed_bytes",))
GATEWAY = Use("gateway", "both behind a gateway", ())


def use_of(users: int | None, prompt_tokens: float | None, *, open_loop: bool = False) -> Use:
    """The use that a run stands for, by its users and the mean length of its prompts; of an open loop, that
    it is one. What is not known counts as one user, and as a short prompt.

    >>> [use_of(*run).name for run in ((1, 50), (1, 2000), (16, 50), (16, 2000), (None, None))]
    ['single', 'long', 'many', 'many', 'single']
    """
    if open_loop:
        return OPEN
    if (users or 1) > 1:
        return MANY
    return LONG if (prompt_tokens or 0) >= LONG_FROM else SINGLE
