"""Lane: one engine of a run, and what the run has learned of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadgen.engines import CacheCounters, EngineInfo, OpenAIEngine
from loadgen.workload.prompt import Prompt


@dataclass(eq=False, slots=True)
class CacheTally:
    """What the measured requests of one engine found in its prefix cache, in tokens.

    `limit` is as many as may honestly be there: chat template and salt (None: not known). `reported` counts
    requests whose usage told their cached tokens, `over` those of them beyond the limit, `most` the largest
    number; `cached` and `prompt` are the tokens of those that told. `hit` sums the server's own counters
    over the measured turns (None: it has none).
    """

    limit: int | None = None
    requests: int = 0
    reported: int = 0
    over: int = 0
    cached: int = 0
    prompt: int = 0
    most: int = 0
    hit: int | None = None
    before: CacheCounters | None = None
    counters: bool = True

    def add(self, cached_tokens: int | None, prompt_tokens: int | None) -> None:
        self.requests += 1
        if cached_tokens is None:
            return
        self.reported += 1
        self.cached += cached_tokens
        self.prompt += prompt_tokens or 0
        self.most = max(self.most, cached_tokens)
        limit = self.limit if self.limit is not None else (prompt_tokens or 0) // 2
        if cached_tokens > limit:
            self.over += 1


@dataclass(eq=False, slots=True)
class Lane:
    """`info` and `model` are None until the engine has been identified. `request_s` is about how long a
    request takes, in seconds, as the warm-up has shown."""

    engine: OpenAIEngine
    info: EngineInfo | None = None
    warm: bool = False
    request_s: float = 1.0
    cache: CacheTally = field(default_factory=CacheTally)
    next_replica: int = 0

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def model(self) -> str | None:
        return self.engine.model

    def count(self, prompt: Prompt) -> int | None:
        """Tokens by the server's tokenizer, None without one.

        Engines can also count by generating a token, but that would put the prompt into the server's prefix
        cache just before it is measured.
        """
        if self.engine.counting != "tokenizer":
            return None
        tokens = self.engine.count_tokens(prompt)
        return tokens if self.engine.counting == "tokenizer" else None


def cache_note(name: str, tally: CacheTally) -> str | None:
    """The sentence for the manifest: prompts were found in a cache, or nobody can tell; None if all is well.

    What each request reports decides; where requests report nothing, the server's counters do, as an average
    over the measured requests.
    """
    if not tally.requests:
        return None
    explained = "" if tally.limit is None else f" than the {tally.limit} of template and salt"
    if tally.reported:
        if not tally.over:
            return None
        return (
            f"engine {name}: {tally.over} of {tally.reported} requests found more tokens{explained} in the "
            f"prefix cache (up to {tally.most}), so their TTFT is too good"
        )
    if tally.hit is None:
        return f"engine {name}: prefix cache unverified, neither its answers nor its counters tell"
    mean = tally.hit / tally.requests
    if tally.limit is not None and mean > tally.limit:
        return (
            f"engine {name}: by its own counters {mean:.0f} tokens a request came from the prefix "
            f"cache, more{explained}, so its TTFT is too good"
        )
    if tally.limit is None and tally.hit:
        return f"engine {name}: {mean:.0f} tokens a request came from the prefix cache by its own counters"
    return None


def warm_note(name: str, tally: CacheTally) -> str | None:
    """The sentence about a cache that is meant to help: how much of the prompts came from it, or that nothing
    did, or that nobody can tell; None where nothing was measured."""
    if not tally.requests:
        return None
    if tally.reported:
        if not tally.cached:
            return f"engine {name}: nothing came from the prefix cache, so its later turns were not warm"
        share = tally.cached / max(tally.prompt, 1)
        return (
            f"engine {name}: {share:.0%} of its prompt tokens came from the prefix cache, as is wanted here"
        )
    if tally.hit is None:
        return f"engine {name}: prefix cache unverified, neither its answers nor its counters tell"
    if not tally.hit:
        return f"engine {name}: nothing came from the prefix cache, so its later turns were not warm"
    return (
        f"engine {name}: by its own counters {tally.hit / tally.requests:.0f} tokens a request came from the "
        "prefix cache, as is wanted here"
    )
