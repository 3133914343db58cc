"""Both servers' metrics under common names: captures, older names, several processes and models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.metricnames import FIELDS, engine_fields
from tests.support.captures import capture
from tests.support.metricsfile import recorded


def captured(engine: str) -> str:
    return capture(engine, "get_metrics").exchanges[0].http().body.decode()


def test_llamacpp_as_captured() -> None:
    # In the text: 4689 prompt tokens computed and 1451 from the cache.
    assert engine_fields(captured("llamacpp")) == {
        "running": 1,
        "waiting": 0,
        "cache_queries_total": 6140,
        "cache_hits_total": 1451,
        "prompt_tokens_total": 6140,
        "generation_tokens_total": 9256,
        "draft_tokens_total": 0,
        "accepted_tokens_total": 0,
    }


def test_vllm_as_captured() -> None:
    fields = engine_fields(captured("vllm"))
    assert fields.keys() == {
        "running",
        "waiting",
        "kv_used_share",
        "preemptions_total",
        "cache_queries_total",
        "cache_hits_total",
        "prompt_tokens_total",
        "generation_tokens_total",
    }
    assert fields["kv_used_share"] == 0


def test_a_recorded_load() -> None:
    last = engine_fields(recorded("vllm")[-1].text)
    # 147 requests of 256 tokens, as the client of that recording sent them.
    assert last["generation_tokens_total"] == 147 * 256
    assert (last["prompt_tokens_total"], last["cache_hits_total"]) == (25608, 6688)
    most = max(engine_fields(page.text)["running"] for page in recorded("vllm"))
    assert most == 16
    last = engine_fields(recorded("llamacpp")[-1].text)
    assert (last["generation_tokens_total"], last["prompt_tokens_total"]) == (139 * 256, 17827 + 7128)


OLD_VLLM = """
vllm:num_requests_running{model_name="m"} 2.0
vllm:num_requests_waiting{model_name="m"} 1.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 80
vllm:gpu_prefix_cache_hits_total{model_name="m"} 16
vllm:gpu_prefix_cache_queries_created{model_name="m"} 1.79e9
"""
BOTH_NAMES = """
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:gpu_cache_usage_perc{engine="0"} 0.5
"""
OLD_LLAMA = """
llamacpp:prompt_tokens_total 100
llamacpp:kv_cache_usage_ratio 0.125
llamacpp:requests_processing 3
"""
TWO_ENGINES = """
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
"""
TWO_MODELS = """
vllm:num_requests_running{model_name="a"} 3.0
vllm:num_requests_running{model_name="b"} 4.0
vllm:num_requests_waiting 1
"""


@pytest.mark.parametrize(
    ("text", "model", "expected"),
    [
        (
            OLD_VLLM,
            None,
            {
                "running": 2,
                "waiting": 1,
                "kv_used_share": 0.25,
                "cache_queries_total": 80,
                "cache_hits_total": 16,
            },
        ),
        (BOTH_NAMES, None, {"kv_used_share": 0.5}),
        # Without a count of cached tokens, nothing is known of the cache.
        (OLD_LLAMA, None, {"running": 3, "kv_used_share": 0.125, "prompt_tokens_total": 100}),
        (TWO_ENGINES, "m", {"running": 7, "kv_used_share": 0.4}),
        (TWO_MODELS, None, {"running": 7, "waiting": 1}),
        (TWO_MODELS, "b", {"running": 4, "waiting": 1}),
        (TWO_MODELS, "an alias", {"running": 7, "waiting": 1}),
        ("vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf", None, {}),
        ("<html>vllm:num_requests_running 3</html>", None, {}),
        ("", None, {}),
    ],
)
def test_names(text: str, model: str | None, expected: dict[str, float]) -> None:
    assert engine_fields(text, model) == pytest.approx(expected)


@given(st.text(max_size=200), st.sampled_from(sorted(FIELDS)))
def test_whatever_a_server_sends_is_data(noise: str, name: str) -> None:
    metric = FIELDS[name][0][0]
    assert all(isinstance(v, float) for v in engine_fields(f"{noise}\n{metric} {noise}").values())
