"""Cost, by hand."""

import pytest

from loadgen.compare.cost import cost_ratio, engine_cost


def test_a_million_tokens() -> None:
    # 1,000 tokens/s are 3.6 million an hour; two GPUs at 1.80 each cost 3.60.
    got = engine_cost(1000.0, 2, "NVML", 1.80)
    assert got["per_million_output_tokens"] == pytest.approx(1.0)
    assert got["tokens_per_s_per_gpu"] == 500.0
    assert (got["gpus"], got["gpus_source"], got["gpu_hour"]) == (2, "NVML", 1.80)


def test_without_a_price_or_a_number_of_gpus() -> None:
    assert engine_cost(1000.0, 1, "--gpus") == {
        "gpus": 1,
        "gpus_source": "--gpus",
        "tokens_per_s_per_gpu": 1000.0,
    }
    assert engine_cost(1000.0, None, "") == engine_cost(None, 1, "") == engine_cost(0.0, 1, "") == {}


def test_the_ratio_is_that_of_the_throughput_turned_over() -> None:
    # Twice as fast on the same card: half the cost. On two cards: the same.
    assert cost_ratio(1, 1, 2.0, 1.6, 2.5) == pytest.approx({"ratio": 0.5, "low": 0.4, "high": 0.625})
    assert cost_ratio(2, 1, 2.0, 1.6, 2.5) == pytest.approx({"ratio": 1.0, "low": 0.8, "high": 1.25})
    assert cost_ratio(1, 1, 2.0, None, None) == {"ratio": 0.5}
    assert cost_ratio(1, 1, None, None, None) == {}
