"""How a conversation goes on: the model's own answer, then the next question. Pure."""

from __future__ import annotations

import random
from dataclasses import replace

from loadgen.workload.classes import WARM_TURNS
from loadgen.workload.prompt import Prompt


def next_prompt(prompt: Prompt, answer: str) -> Prompt:
    """The request that follows: all that has been said, the answer, and the next of `follow_ups`, of which
    there must be one. Its pair is the next number."""
    question, *rest = prompt.follow_ups
    said = (
        *prompt.as_messages(),
        {"role": "assistant", "content": answer},
        {"role": "user", "content": question},
    )
    return replace(
        prompt,
        pair=prompt.pair + 1,
        text=question,
        tokens=None,
        messages=said,
        traffic_class=WARM_TURNS,
        follow_ups=tuple(rest),
    )


def think_time(mean_s: float, seed: int, pair: int) -> float:
    """Seconds before the request number `pair` is sent: uniform from half to one and a half of the mean, the
    same for every engine."""
    return mean_s * random.Random(f"{seed}/think/{pair}").uniform(0.5, 1.5)
