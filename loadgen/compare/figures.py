"""The figures in which engines are compared."""

from __future__ import annotations

from dataclasses import dataclass

from loadgen.metrics import METRICS


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure by its name in the summary. `title` is what it is called within a sentence: the lower ..."""

    name: str
    title: str
    higher_is_better: bool
    unit: str = ""


# Titles of table rows that don't read well in a sentence.
_TITLES = {
    "e2e_ms": "end-to-end time",
    "scheduled_e2e_ms": "scheduled end-to-end time",
    "first_event_ms": "time to first event",
    "headers_ms": "time to response head",
}
OF_REQUESTS = tuple(
    Figure(m.name, _TITLES.get(m.name, m.title), m.higher_is_better, m.unit)
    for m in METRICS
    if m.higher_is_better is not None
)
OF_WINDOW = (
    Figure("throughput_tokens_per_s", "throughput", True, "tokens/s"),
    Figure("requests_per_s", "requests per second", True, "requests/s"),
)
OF_ENERGY = (
    Figure("joules_per_output_token", "energy per output token", False, "J"),
    Figure("joules_per_request", "energy per request", False, "J"),
)
FIGURES = (*OF_REQUESTS, *OF_WINDOW, *OF_ENERGY)

# The claims that a comparison is made for, fixed beforehand. Their means (or values) are corrected for each
# other alone, all other rows for each other: details must not cost the answer.
HEADLINE = frozenset(
    {
        "ttft_ms",
        "tpot_ms",
        "decode_tokens_per_s",
        "e2e_ms",
        "scheduled_ttft_ms",
        "scheduled_e2e_ms",
        "throughput_tokens_per_s",
        "joules_per_output_token",
    }
)
