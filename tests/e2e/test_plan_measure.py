"""What an event and a request cost here, from two real runs."""

from __future__ import annotations

import pytest

from loadgen.plan import Load, plan_for
from loadgen.plan.measure import MeasureError, Sample, measure


def test_the_cost_on_this_machine(sim):
    one = sim("vllm", preset="vllm-steady")
    cost = measure(one.url, samples=(Sample(12, 200, 1), Sample(8, 16, 8)))
    assert cost.event_us + cost.request_us > 0
    assert cost.journal_request_bytes > 300  # what a record says besides its events
    assert 1 < cost.journal_event_bytes < 20  # their times, in digits
    assert cost.memory_mb > 20
    assert plan_for(Load(1, 1.0), cost).workers == 1
    assert sum(row["stream"] for row in one.log_records()) == 12 + 64


def test_a_server_that_fails_is_no_measurement(sim):
    with pytest.raises(MeasureError, match="a run to measure failed"):
        measure(sim("vllm", fault=["error"], speed=20).url, samples=(Sample(2, 8, 1), Sample(1, 8, 1)))
