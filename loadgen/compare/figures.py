"""The figures in which engines are compared."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure by its name in the summary. `title` is what it is called within a sentence."""

    name: str
    title: str
    higher_is_better: bool


OF_REQUESTS = tuple(
    Figure(m.name, m.title, m.higher_is_better) for m in METRICS if m.higher_is_better is not None
)
OF_WINDOW = (
    Figure("throughput_tokens_per_s", "throughput", True),
    Figure("requests_per_s", "requests per second", True),
)
FIGURES = (*OF_REQUESTS, *OF_WINDOW)
