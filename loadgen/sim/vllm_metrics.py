"""The `vllm:` part of a vLLM server's /metrics: its names, types and labels. Pure.

What Python, the process and the HTTP framework add to the real page is left out.
"""

from __future__ import annotations

from loadgen.sim.metrics import HISTOGRAMS, REASONS, Counters
from loadgen.sim.model import Scheduler


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
        if extra.startswith(",finished_reason"):
            own = f'engine="0"{extra},model_name="{model}"'
        lines.append(f"vllm:{name}{{{own}}} {float(value)}")

    add("num_requests_running", "gauge", "Number of requests in model execution batches.", len(s.running))
    add("num_requests_waiting", "gauge", "Number of requests waiting to be processed.", waiting)
    for reason, n in (("capacity", waiting), ("deferred", 0)):
        add(
            "num_requests_waiting_by_reason",
            "gauge",
            "Number of waiting requests by reason.",
            n,
            f',reason="{reason}"',
        )
    used = s.memory.used() / max(1, s.memory.capacity)
    add("kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", min(1.0, used))
    for name, text, value in (
        (
            "prefix_cache_queries",
            "Prefix cache queries, in terms of number of queried tokens.",
            st.queried_tokens,
        ),
        ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", st.cached_tokens),
        ("num_preemptions", "Cumulative number of preemption from the engine.", st.preemptions),
        ("prompt_tokens", "Number of prefill tokens processed.", st.prompt_tokens + st.cached_tokens),
        ("prompt_tokens_cached", "Number of cached prompt tokens (local + external).", st.cached_tokens),
        ("generation_tokens", "Number of generation tokens processed.", st.output_tokens),
    ):
        add(f"{name}_total", "counter", text, value)
    for reason in REASONS:
        add(
            "request_success_total",
            "counter",
            "Count of successfully processed requests.",
            counters.finished[reason],
            f',finished_reason="{reason}"',
        )
    for name, (text, _) in HISTOGRAMS.items():
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
