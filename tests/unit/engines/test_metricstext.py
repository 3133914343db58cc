"""Reading single values out of both servers' /metrics."""

from __future__ import annotations

from loadgen.engines.metricstext import labels, samples, total
from tests.support.captures import capture

TEXT = """# HELP a_total Some.
# TYPE a_total counter
a_total{engine="0",model="m"} 3.0
a_total{engine="1",model="m"} 4.0
b 1e3
c{x="a } b",y="q\\"q"} 5 1700000000000
d NaN
not a sample
e{x="1"} +Inf\r
"""


def test_values() -> None:
    assert total(TEXT, "a_total") == 7
    assert total(TEXT, "b") == 1000
    assert total(TEXT, "c") == 5
    assert total(TEXT, "d") is None
    assert total(TEXT, "nothing") is None
    assert total(TEXT, "nothing", "b") == 1000
    assert len(list(samples(TEXT))) == 6


def test_labels() -> None:
    assert labels(TEXT, "c") == {"x": "a } b", "y": 'q\\"q'}
    assert labels(TEXT, "nothing") == {}


def test_captured_metrics() -> None:
    llama = capture("llamacpp", "get_metrics").exchanges[0].http().body.decode()
    assert total(llama, "llamacpp:requests_processing") == 1
    assert total(llama, "llamacpp:prompt_tokens_cached_total") == 1451
    vllm = capture("vllm", "get_metrics").exchanges[0].http().body.decode()
    assert total(vllm, "vllm:num_requests_running") == 0
    assert labels(vllm, "vllm:cache_config_info")["kv_cache_size_tokens"] == "46592"
