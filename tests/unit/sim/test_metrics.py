from __future__ import annotations

import re

from loadgen.sim.llamacpp_metrics import llama_metrics
from loadgen.sim.metrics import Counters, Gauges, Histogram
from loadgen.sim.model import Constants, Job, Scheduler
from loadgen.sim.vllm_metrics import vllm_metrics


def _value(text: str, series: str) -> float:
    found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.M)
    assert found, series
    return float(found[1])


def _busy(kind: str) -> Scheduler:
    """100 prompt tokens in 10 + 100 ms, then 4 more tokens in 40 ms; a second request is half-way."""
    s = Scheduler(Constants(kind=kind, step_s=0.01, prefill_tok_s=1000.0, slots=1, kv_tokens=1600))
    for start in (0, 1000):
        s.submit(Job(tuple(range(start, start + 100)), (9,) * 5), 0.0)
    s.advance(0.265)
    return s


def test_histogram_is_cumulative() -> None:
    h = Histogram((1.0, 2.0))
    for x in (0.5, 1.0, 1.5, 9.0):
        h.observe(x)
    assert h.lines("h", 'engine="0",model_name="m"') == [
        'h_bucket{engine="0",le="1.0",model_name="m"} 2.0',
        'h_bucket{engine="0",le="2.0",model_name="m"} 3.0',
        'h_bucket{engine="0",le="+Inf",model_name="m"} 4.0',
        'h_count{engine="0",model_name="m"} 4.0',
        'h_sum{engine="0",model_name="m"} 12.0',
    ]


def test_vllm() -> None:
    s, counters = _busy("vllm"), Counters()
    done = Job((1,) * 10, (2,) * 3, arrived=1.0, started=1.5, first=2.0, last=3.0, sent=3)
    counters.finish(done, "length")
    text = vllm_metrics(s, counters, "m")
    labels = '{engine="0",model_name="m"}'
    assert _value(text, f"vllm:num_requests_running{labels}") == 1
    assert _value(text, f"vllm:generation_tokens_total{labels}") == 6
    assert _value(text, f"vllm:prompt_tokens_total{labels}") == 200
    assert _value(text, f"vllm:kv_cache_usage_perc{labels}") == 7 / 100  # 7 blocks of 16 hold 101 tokens
    assert _value(text, f"vllm:time_to_first_token_seconds_sum{labels}") == 1.0
    assert _value(text, f"vllm:request_queue_time_seconds_sum{labels}") == 0.5
    assert _value(text, f"vllm:request_time_per_output_token_seconds_sum{labels}") == 0.5
    success = 'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"}'
    assert _value(text, success) == 1


def test_llamacpp_and_its_gauges_that_a_scrape_resets() -> None:
    s, gauges = _busy("llamacpp"), Gauges()
    text = llama_metrics(s, gauges)
    assert _value(text, "llamacpp:prompt_tokens_total") == 200
    # The request that is half-way has one token, which will count when it has ended.
    assert _value(text, "llamacpp:tokens_predicted_total") == 5
    assert _value(text, "llamacpp:tokens_predicted_seconds_total") == 0.04
    assert _value(text, "llamacpp:requests_processing") == 1
    assert _value(text, "llamacpp:prompt_seconds_total") == 0.22
    assert abs(_value(text, "llamacpp:prompt_tokens_seconds") - 200 / 0.22) < 0.1
    assert _value(llama_metrics(s, gauges), "llamacpp:prompt_tokens_seconds") == 0
