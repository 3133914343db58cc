"""Little's law: the mean number in a system is the rate at which it is left times the mean time in it.

N = X R holds for any system that is empty at both ends of the time observed, whatever goes on inside it
(J. D. C. Little, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9(3), 1961).
"""

from __future__ import annotations

from dataclasses import dataclass


def residual(concurrency: float, departures_per_s: float, mean_time_s: float) -> float | None:
    """|N - X R| / N, 0 when the law holds exactly; None if nothing was in flight."""
    if concurrency <= 0:
        return None
    return abs(concurrency - departures_per_s * mean_time_s) / concurrency


@dataclass(frozen=True, slots=True)
class LittlesLaw:
    """What a published row implies. `residual` is |N - X R| / N."""

    implied_latency_s: float
    implied_concurrency: float
    residual: float

    def holds(self, tolerance: float = 0.05) -> bool:
        return self.residual <= tolerance


def littles_law(
    concurrency: float, throughput_tokens_per_s: float, output_tokens: float, mean_latency_s: float
) -> LittlesLaw:
    """Whether four figures of a table can be true together.

    `output_tokens` is per request, so that requests leave at throughput / output_tokens a second;
    `mean_latency_s` is the mean time from sending a request to the end of its response. Raises ValueError
    unless concurrency, throughput and output_tokens are positive.

    >>> law = littles_law(16, 380, 256, 1.8)
    >>> round(law.implied_latency_s, 1), round(law.implied_concurrency, 1), law.holds()
    (10.8, 2.7, False)
    """
    if concurrency <= 0 or throughput_tokens_per_s <= 0 or output_tokens <= 0:
        raise ValueError("concurrency, throughput and output tokens must be more than 0")
    requests_per_s = throughput_tokens_per_s / output_tokens
    in_flight = requests_per_s * mean_latency_s
    return LittlesLaw(concurrency / requests_per_s, in_flight, abs(concurrency - in_flight) / concurrency)
