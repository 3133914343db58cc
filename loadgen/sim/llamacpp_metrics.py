"""llama-server's /metrics: its names, types and order. Pure."""

from __future__ import annotations

from loadgen.sim.metrics import Gauges
from loadgen.sim.model import Scheduler


def llama_metrics(s: Scheduler, gauges: Gauges) -> str:
    """The whole page; asking for it starts the throughput gauges anew. As in the real server, the tokens of
    an answer are counted when it has ended, all at once."""
    st = s.stats
    prompt_speed, output_speed = gauges.scrape(s)
    out: list[str] = []

    def add(name: str, kind: str, text: str, value: float) -> None:
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        name = f"llamacpp:{name}"
        out.append(f"# HELP {name} {text}\n# TYPE {name} {kind}\n{name} {shown}\n")

    def counter(name: str, text: str, value: float) -> None:
        add(name, "counter", text, value)

    def gauge(name: str, text: str, value: float) -> None:
        add(name, "gauge", text, value)

    counter(
        "prompt_tokens_total", "Number of prompt tokens processed, excluding cached tokens", st.prompt_tokens
    )
    counter("prompt_tokens_cached_total", "Number of prompt tokens reused from the cache", st.cached_tokens)
    counter("prompt_seconds_total", "Total time spent processing prompts", round(st.prompt_s, 3))
    counter("tokens_predicted_total", "Number of generation tokens processed", st.ended_tokens)
    counter("tokens_predicted_seconds_total", "Total time spent generating tokens", round(st.ended_s, 3))
    counter(
        "n_decode_total",
        "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding",
        st.steps,
    )
    counter("n_tokens_max", "Largest observed sequence length (prompt + generation)", st.longest)
    counter("spec_decode_num_draft_tokens_total", "Speculative: Total draft tokens generated", 0)
    counter(
        "spec_decode_num_accepted_tokens_total",
        "Speculative: Total draft tokens accepted by the target model",
        0,
    )
    counter("spec_decode_num_drafts_total", "Speculative: Total speculative decoding verification steps", 0)
    gauge("prompt_tokens_seconds", "Average prompt throughput in tokens/s", prompt_speed)
    gauge("predicted_tokens_seconds", "Average generation throughput in tokens/s", output_speed)
    gauge("requests_processing", "Number of requests processing", len(s.running))
    gauge("requests_deferred", "Number of requests deferred", len(s.waiting))
    busy = st.busy / max(1, st.steps)
    gauge("n_busy_slots_per_decode", "Average number of busy slots per llama_decode() call", busy)
    return "".join(out)
