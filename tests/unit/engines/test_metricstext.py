"""Reading single values out of both servers' /metrics."""

from __future__ import annotations

from loadgen.engines.metricstext import label, labels, samples
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
    found = list(samples(TEXT))
    assert [(name, value) for name, _, value in found[:4]] == [
        ("a_total", 3.0),
        ("a_total", 4.0),
        ("b", 1000.0),
        ("c", 5.0),
    ]
    assert [name for name, _, _ in found] == ["a_total", "a_total", "b", "c", "d", "e"]
    assert found[1][1] == '{engine="1",model="m"}'


def test_one_label() -> None:
    assert label('{engine="1",model="m"}', "model") == "m"
    assert label('{engine="1",model="m"}', "odel") is None
    assert label("", "model") is None


def test_labels() -> None:
    assert labels(TEXT, "c") == {"x": "a } b", "y": 'q\\"q'}
    assert labels(TEXT, "nothing") == {}


def test_captured_labels() -> None:
    vllm = capture("vllm", "get_metrics").exchanges[0].http().body.decode()
    assert labels(vllm, "vllm:cache_config_info")["kv_cache_size_tokens"] == "46592"
