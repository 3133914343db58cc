"""What every word of the page means: metrics say so themselves (their docstrings), the rest is here."""

from __future__ import annotations

import inspect
import re

from loadgen.metrics import METRICS
from loadgen.report.html.markup import Html, join, tag

TERMS = (
    (
        "throughput",
        "Tokens that arrived inside the complete turns, divided by their length. Tokens of requests that "
        "failed later did arrive and count.",
    ),
    ("concurrency", "Mean number of requests in flight over the complete turns."),
    (
        "Little's residual",
        "How far concurrency differs from rate times mean time in flight. Over whole turns it is 0 but for "
        "rounding; 0.1 % or more says that the books don't fit.",
    ),
    (
        "turn, block",
        "A turn is a fixed list of prompts on one engine, from nobody in flight to nobody in flight. A block "
        "is one turn of each engine with the same prompts: the unit of comparison, since requests of one "
        "turn are not independent of each other.",
    ),
    (
        "ratio and interval",
        "Of each block the logarithm of the ratio of both engines' values; of those the mean, and the 95 % "
        "interval that Student's t gives it. It takes 6 complete blocks.",
    ),
    (
        "better, no difference, not decidable",
        "Better: the whole interval lies beyond the margin. No difference: all of it lies within. Otherwise "
        "it can't be decided with these blocks.",
    ),
    (
        "valid, suspect, void",
        "Whether checks of the run found a reason to doubt it, or one not to use it; the page names them.",
    ),
    (
        "p50, p95, p99",
        "Exact percentiles by nearest rank, from all samples. A p99 of fewer than 1,000 is marked ~.",
    ),
    (
        "distributions",
        "Curves go through exact points of the empirical distribution; of many samples some hundred points "
        "are drawn, closer to each other towards both ends.",
    ),
    (
        "energy",
        "Joules that the GPUs' own counters rose by during an engine's turns: the whole card, idle power "
        "included.",
    ),
)


def definitions() -> Html:
    entries = [
        (f"{metric.title}, {metric.unit}", _words(inspect.getdoc(type(metric)) or "")) for metric in METRICS
    ]
    entries += [(name, join(words)) for name, words in TERMS]
    parts = [part for name, words in entries for part in (tag("dt", name), tag("dd", words))]
    return tag("dl", *parts, class_="definitions")


def _words(docstring: str) -> Html:
    """A docstring as a paragraph; what stands between backticks is code."""
    parts = re.split(r"`([^`]+)`", " ".join(docstring.split()))
    return join(*(tag("code", part) if n % 2 else part for n, part in enumerate(parts)))
