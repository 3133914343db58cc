"""The shipped text, as an endless stream of words in a seeded order."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources


@cache
def sentences() -> tuple[str, ...]:
    """All sentences of the shipped text: plain ASCII English, each of them once."""
    text = (resources.files("loadgen.workload") / "text" / "prose.txt").read_text(encoding="ascii")
    return tuple(re.split(r"(?<=[.?!])\s+", text.strip()))


def words(seed: str) -> Iterator[str]:
    """Words of whole sentences, without end; the same seed gives the same words.

    Every pass over the text draws a new order, so a prompt that is longer than the text (about 5,000
    tokens) repeats sentences but never the passage around them.
    """
    rng = random.Random(seed)
    order = list(sentences())
    while True:
        rng.shuffle(order)
        for sentence in order:
            yield from sentence.split(" ")
