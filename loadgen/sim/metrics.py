"""What the simulated engines count beside the scheduler, for their /metrics pages. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from loadgen.sim.model import Job, Scheduler

SECONDS = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    640.0,
    2560.0,
)
LONG = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
    480.0,
    960.0,
    1920.0,
    7680.0,
)
GAPS = (
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)


@dataclass
class Histogram:
    """A Prometheus histogram: counts[i] observations were at most bounds[i] (and above the bound before)."""

    bounds: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> list[str]:
        out = []
        n = 0
        for bound, count in zip([*map(float, self.bounds), "+Inf"], self.counts, strict=True):
            n += count
            out.append(
                f"{name}_bucket{{{labels.replace(',model', f',le={_quote(bound)},model', 1)}}} {float(n)}"
            )
        return [*out, f"{name}_count{{{labels}}} {float(n)}", f"{name}_sum{{{labels}}} {self.total}"]


def _quote(value: object) -> str:
    return f'"{value}"'


HISTOGRAMS = {
    "request_prompt_tokens": ("Number of prefill tokens processed.", TOKENS),
    "request_generation_tokens": ("Number of generation tokens processed.", TOKENS),
    "time_to_first_token_seconds": ("Histogram of time to first token in seconds.", SECONDS),
    "inter_token_latency_seconds": ("Histogram of inter-token latency in seconds.", GAPS),
    "request_time_per_output_token_seconds": (
        "Histogram of time_per_output_token_seconds per request.",
        GAPS,
    ),
    "e2e_request_latency_seconds": ("Histogram of e2e request latency in seconds.", LONG),
    "request_queue_time_seconds": ("Histogram of time spent in WAITING phase for request.", LONG),
    "request_inference_time_seconds": ("Histogram of time spent in RUNNING phase for request.", LONG),
    "request_prefill_time_seconds": ("Histogram of time spent in PREFILL phase for request.", LONG),
    "request_decode_time_seconds": ("Histogram of time spent in DECODE phase for request.", LONG),
}
REASONS = ("stop", "length", "abort", "error", "repetition")


class Counters:
    """What the scheduler does not count itself."""

    def __init__(self) -> None:
        self.finished = dict.fromkeys(REASONS, 0)
        self.histograms = {name: Histogram(bounds) for name, (_, bounds) in HISTOGRAMS.items()}

    def gap(self, seconds: float) -> None:
        self.histograms["inter_token_latency_seconds"].observe(seconds)

    def finish(self, job: Job, reason: str) -> None:
        """A sequence is complete (or was given up: abort, error)."""
        self.finished[reason] += 1
        if job.first is None or job.last is None or job.started is None:
            return
        h = self.histograms
        h["request_prompt_tokens"].observe(len(job.prompt))
        h["request_generation_tokens"].observe(job.sent)
        h["time_to_first_token_seconds"].observe(job.first - job.arrived)
        h["e2e_request_latency_seconds"].observe(job.last - job.arrived)
        h["request_queue_time_seconds"].observe(job.started - job.arrived)
        h["request_inference_time_seconds"].observe(job.last - job.started)
        h["request_prefill_time_seconds"].observe(job.first - job.started)
        h["request_decode_time_seconds"].observe(job.last - job.first)
        if job.sent > 1:
            h["request_time_per_output_token_seconds"].observe((job.last - job.first) / (job.sent - 1))


class Gauges:
    """llama-server's throughput gauges: they tell of the time since the last scrape."""

    def __init__(self) -> None:
        self._seen = (0, 0.0, 0, 0.0)

    def scrape(self, s: Scheduler) -> tuple[float, float]:
        st = s.stats
        p, ps, o, os_ = self._seen
        self._seen = (st.prompt_tokens, st.prompt_s, st.ended_tokens, st.ended_s)
        prompt_s, output_s = st.prompt_s - ps, st.ended_s - os_
        return (
            (st.prompt_tokens - p) / prompt_s if prompt_s else 0.0,
            (st.ended_tokens - o) / output_s if output_s else 0.0,
        )
