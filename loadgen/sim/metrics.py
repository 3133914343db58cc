"""What the simulated engines count, and their /metrics pages. Pure.

Names, types, labels and order are those of the real servers; Python's, the process's and HTTP's own
metrics of a vLLM server are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from loadgen.sim.model import Job, Scheduler

SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
           80.0, 160.0, 640.0, 2560.0)  # fmt: skip
LONG = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
        1920.0, 7680.0)  # fmt: skip
GAPS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
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
            out.append(f'{name}_bucket{{{labels.replace(",model", f",le={_quote(bound)},model", 1)}}} {float(n)}')
        return [*out, f"{name}_count{{{labels}}} {float(n)}", f"{name}_sum{{{labels}}} {self.total}"]


def _quote(value: object) -> str:
    return f'"{value}"'


_HISTOGRAMS = {
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
_REASONS = ("stop", "length", "abort", "error", "repetition")


class Counters:
    """What the scheduler does not count itself."""

    def __init__(self) -> None:
        self.finished = dict.fromkeys(_REASONS, 0)
        self.histograms = {name: Histogram(bounds) for name, (_, bounds) in _HISTOGRAMS.items()}

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


def vllm_metrics(s: Scheduler, counters: Counters, model: str) -> str:
    """The `vllm:` part of a vLLM server's /metrics."""
    labels = f'engine="0",model_name="{model}"'
    c, st = s.constants, s.stats
    waiting = len(s.waiting)
    lines: list[str] = []

    def add(name: str, kind: str, text: str, value: float, extra: str = "") -> None:
        if not extra or f"# TYPE vllm:{name} {kind}" not in lines:
            lines.extend((f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"))
        own = labels + extra
        if extra.startswith(',finished_reason'):
            own = f'engine="0"{extra},model_name="{model}"'
        lines.append(f"vllm:{name}{{{own}}} {float(value)}")

    add("num_requests_running", "gauge", "Number of requests in model execution batches.", len(s.running))
    add("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", waiting)
    for reason, n in (("capacity", waiting), ("deferred", 0)):
        add("num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.", n, f',reason="{reason}"')
    used = s.memory.used() / max(1, s.memory.capacity)
    add("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", min(1.0, used))
    for name, text, value in (
        ("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", st.queried_tokens),
        ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", st.cached_tokens),
        ("num_preemptions", "Cumulative number of preemption from the engine.", st.preemptions),
        ("prompt_tokens", "Number of prefill tokens processed.", st.prompt_tokens + st.cached_tokens),
        ("prompt_tokens_cached", "Number of cached prompt tokens (local + external).", st.cached_tokens),
        ("generation_tokens", "Number of generation tokens processed.", st.output_tokens),
    ):
        add(f"{name}_total", "counter", text, value)
    for reason in _REASONS:
        add(
            "request_success_total", "counter", "Count of successfully processed requests.",
            counters.finished[reason], f',finished_reason="{reason}"',
        )  # fmt: skip
    for name, (text, _) in _HISTOGRAMS.items():
        lines.extend((f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} histogram"))
        lines.extend(counters.histograms[name].lines(f"vllm:{name}", labels))
    info = f'block_size="{c.block}",cache_dtype="auto",enable_prefix_caching="{c.prefix_cache}",engine="0",'
    info += f'num_gpu_blocks="{c.kv_tokens // c.block}"'
    lines += [
        "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig",
        "# TYPE vllm:cache_config_info gauge",
        f"vllm:cache_config_info{{{info}}} 1.0",
    ]
    return "\n".join(lines) + "\n"


class LlamaGauges:
    """llama-server's throughput gauges: they tell of the time since the last scrape, and a scrape resets them."""

    def __init__(self) -> None:
        self._seen = (0, 0.0, 0, 0.0)

    def scrape(self, s: Scheduler) -> tuple[float, float]:
        st = s.stats
        p, ps, o, os_ = self._seen
        self._seen = (st.prompt_tokens, st.prompt_s, st.output_tokens, st.output_s)
        prompt_s, output_s = st.prompt_s - ps, st.output_s - os_
        return (
            (st.prompt_tokens - p) / prompt_s if prompt_s else 0.0,
            (st.output_tokens - o) / output_s if output_s else 0.0,
        )


def llama_metrics(s: Scheduler, gauges: LlamaGauges) -> str:
    """llama-server's /metrics."""
    st = s.stats
    prompt_speed, output_speed = gauges.scrape(s)
    rows: list[tuple[str, str, str, float]] = [
        ("prompt_tokens_total", "counter", "Number of prompt tokens processed, excluding cached tokens", st.prompt_tokens),
        ("prompt_tokens_cached_total", "counter", "Number of prompt tokens reused from the cache", st.cached_tokens),
        ("prompt_seconds_total", "counter", "Total time spent processing prompts", round(st.prompt_s, 3)),
        ("tokens_predicted_total", "counter", "Number of generation tokens processed", st.output_tokens),
        ("tokens_predicted_seconds_total", "counter", "Total time spent generating tokens", round(st.output_s, 3)),
        ("n_decode_total", "counter",
         "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding", st.steps),
        ("n_tokens_max", "counter", "Largest observed sequence length (prompt + generation)", st.longest),
        ("spec_decode_num_draft_tokens_total", "counter", "Speculative: Total draft tokens generated", 0),
        ("spec_decode_num_accepted_tokens_total", "counter",
         "Speculative: Total draft tokens accepted by the target model", 0),
        ("spec_decode_num_drafts_total", "counter", "Speculative: Total speculative decoding verification steps", 0),
        ("prompt_tokens_seconds", "gauge", "Average prompt throughput in tokens/s", prompt_speed),
        ("predicted_tokens_seconds", "gauge", "Average generation throughput in tokens/s", output_speed),
        ("requests_processing", "gauge", "Number of requests processing", len(s.running)),
        ("requests_deferred", "gauge", "Number of requests deferred", len(s.waiting)),
        ("n_busy_slots_per_decode", "gauge", "Average number of busy slots per llama_decode() call",
         st.busy / max(1, st.steps)),
    ]  # fmt: skip
    return "".join(
        f"# HELP llamacpp:{name} {text}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value:g}\n"
        if isinstance(value, float)
        else f"# HELP llamacpp:{name} {text}\n# TYPE llamacpp:{name} {kind}\nllamacpp:{name} {value}\n"
        for name, kind, text, value in rows
    )
