"""Traffic classes: kinds of requests that are measured together and reported apart.

A mix is written `NAME=SHARE[:PROMPT/OUTPUT]` with commas between: `interactive=70,long=20:8000/256,batch=10`.
Shares are weights, lengths are tokens; the names below have lengths of their own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 8  # a class is a tag of every request, so there are few
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")
_CLASS = re.compile(
    r"(?P<name>[^=:]*)=(?P<share>[^=:]*)(?::(?P<prompt>[0-9_]+)/(?P<output>[0-9_]+))?", re.ASCII
)
LENGTHS = {"interactive": (200, 128), "long": (2000, 256), "batch": (500, 512)}  # prompt, output tokens
MIX = "interactive=70,long=20,batch=10"
LARGEST = 10_000_000

FIRST_TURN = "first-turn"
WARM_TURNS = "warm-turns"
"""The exchanges of a conversation after its first: all but the last message is in the server's cache."""


@dataclass(frozen=True, slots=True)
class TrafficClass:
    """`share` is a weight among the classes of a run."""

    name: str
    share: float
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request to be made: its lengths in tokens, and its class where there are classes."""

    prompt_tokens: int
    output_tokens: int
    traffic_class: str | None = None


def parse_mix(text: str) -> tuple[TrafficClass, ...]:
    """Raises ValueError in one sentence.

    >>> parse_mix("interactive=3, summary=1:6000/300")[1]
    TrafficClass(name='summary', share=1.0, prompt_tokens=6000, output_tokens=300)
    """
    found: dict[str, TrafficClass] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        one = _class(part)
        if one.name in found:
            raise ValueError(f"the class {one.name!r} is there twice")
        found[one.name] = one
    if not found:
        raise ValueError(f"a mix has at least one class, as in {MIX}")
    if len(found) > MOST:
        raise ValueError(f"a mix has at most {MOST} classes, this one has {len(found)}")
    return tuple(found.values())


def _class(part: str) -> TrafficClass:
    match = _CLASS.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not NAME=SHARE or NAME=SHARE:PROMPT/OUTPUT, as in long=20:8000/256")
    name = match["name"].strip()
    if not _NAME.fullmatch(name):
        raise ValueError(f"a class cannot be called {name!r}: take up to 32 letters, digits and . _ + -")
    try:
        share = float(match["share"])
    except ValueError:
        share = 0.0
    if not 0 < share <= 1e6:
        raise ValueError(f"the share of {name} is a number above 0, not {match['share']!r}")
    if match["prompt"] is None:
        if name not in LENGTHS:
            known = ", ".join(LENGTHS)
            raise ValueError(
                f"say how long requests of {name} are, as in {name}={match['share']}:2000/256 (prompt and "
                f"output tokens; known without that: {known})"
            )
        return TrafficClass(name, share, *LENGTHS[name])
    prompt, output = int(match["prompt"]), int(match["output"])
    if not (1 <= prompt <= LARGEST and 1 <= output <= LARGEST):
        raise ValueError(f"lengths of {name} are numbers of tokens from 1 to {LARGEST:,}")
    return TrafficClass(name, share, prompt, output)


def length_class(prompt_tokens: int) -> str:
    """The class of one length, where a run measures several."""
    return f"prompt-{prompt_tokens}"


def mixed(classes: Sequence[TrafficClass], requests: int, seed: str) -> list[Wanted]:
    """One turn of a mix: each class as often as its share says (by largest remainders, and at least once if
    there is room for all), in an order that `seed` determines."""
    total = sum(c.share for c in classes)
    ideal = [requests * c.share / total for c in classes]
    counts = [int(n) for n in ideal]
    for k in sorted(range(len(classes)), key=lambda k: counts[k] - ideal[k])[: requests - sum(counts)]:
        counts[k] += 1
    if requests >= len(classes):
        for k, n in enumerate(counts):
            if n == 0:
                counts[max(range(len(counts)), key=counts.__getitem__)] -= 1
                counts[k] = 1
    out = [
        Wanted(c.prompt_tokens, c.output_tokens, c.name)
        for c, n in zip(classes, counts, strict=True)
        for _ in range(n)
    ]
    random.Random(seed).shuffle(out)
    return out
