from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.plan import Cost, Load, plan_for
from loadgen.plan.machine import Machine
from loadgen.plan.screen import lines

COST = Cost(
    event_us=8.0,
    request_us=500.0,
    send_event_us=0.1,
    send_request_us=5.0,
    master_event_us=0.1,
    master_request_us=30.0,
    journal_event_bytes=8.0,
    journal_request_bytes=900.0,
    channel_share=0.4,
    memory_mb=90.0,
    memory_stream_kb=10.0,
    source="made up",
)
BIG = Machine(cores=64, memory_mb=64_000, descriptors=1_000_000, ports=60_000)


def test_the_rates_of_a_load_are_littles_law() -> None:
    load = Load(100, 50.0, output_tokens=200, ttft_s=1.0)
    assert load.request_s == 5.0  # a second, then 200 tokens at 50 a second
    assert load.requests_per_s == 20.0  # 100 in flight, 5 s each
    assert load.events_per_s == 5000.0
    assert replace(load, events_per_token=0.5).events_per_s == 2500.0


def test_an_open_loop_has_as_many_streams_as_littles_law_says() -> None:
    load = Load(1, 50.0, output_tokens=200, ttft_s=1.0).at_rate(20.5)
    assert load.concurrency == 103  # 20.5 a second, 5 s each
    assert load.requests_per_s == 20.5
    text = "\n".join(lines(plan_for(load, COST), COST, BIG))
    assert "locust -f locustfiles/open_loop.py --rate 20.5" in text
    assert "-u " not in text


def test_a_small_load_is_one_process() -> None:
    plan = plan_for(Load(256, 50.0), COST)
    # 12,800 events at 8 us, 45.5 requests at 500 us
    assert plan.busy == pytest.approx(0.1024 + 256 / 5.62 * 5e-4)
    assert (plan.workers, plan.cores, plan.master_busy, plan.channel_mbit_s) == (1, 2, None, None)
    assert plan.memory_mb == pytest.approx(90 + 2.56)
    assert plan.received_mbit_s == pytest.approx(12_800 * 320 * 8 / 1e6)


def test_the_example_of_the_documentation() -> None:
    plan = plan_for(Load(2000, 40.0), COST)
    assert plan.workers == 2  # 80,000 events/s and 290 requests/s are 0.785 of a core: too much for one
    assert plan.cores == 4
    assert plan.streams == 1000
    assert 0.38 < plan.busy < 0.42
    assert plan.master_busy is not None
    assert plan.master_busy == pytest.approx((80_000 * 0.1 + 2000 / 6.9 * 30) / 1e6)
    # A record of 256 events is 2,948 bytes.
    assert plan.journal_mb_an_hour == pytest.approx(2000 / 6.9 * 2948 * 3600 / 1e6)


def test_a_worker_has_no_more_streams_than_locust_lets_it_have_files() -> None:
    idle = plan_for(Load(30_000, 0.1), COST)
    assert idle.busy < 0.1
    assert idle.workers == 4
    assert idle.descriptors <= 10_000


def test_a_master_that_would_be_too_busy_is_said() -> None:
    plan = plan_for(Load(100_000, 100.0, output_tokens=16, ttft_s=0.1), COST)
    assert plan.master_busy is not None
    assert plan.master_busy > 0.7
    assert any("the master would be" in note for note in plan.notes)


@given(
    st.integers(1, 100_000),
    st.floats(0.1, 1000),
    st.floats(0.05, 2),
    st.integers(1, 5000),
    st.floats(0.1, 1.0),
)
def test_no_worker_is_busier_than_it_may_be_and_one_less_would_be(
    concurrency: int, speed: float, events: float, output: int, busy: float
) -> None:
    load = Load(concurrency, speed, events, output_tokens=output)
    plan = plan_for(load, COST, busy=busy)
    assert plan.busy <= busy * (1 + 1e-9)
    assert plan.workers * plan.streams >= concurrency
    assert plan.descriptors <= 10_000
    more = plan_for(replace(load, concurrency=concurrency + 1000), COST, busy=busy)
    assert more.workers >= plan.workers
    if plan.workers > 2 and plan.streams < 9_000:
        assert plan.busy * plan.workers / (plan.workers - 1) > busy * (1 - 1e-9) or (
            concurrency / (plan.workers - 1) > 9_900
        )


def test_what_a_machine_lacks_is_said() -> None:
    plan = plan_for(Load(2000, 40.0), COST)
    assert BIG.lacks(plan) == []
    small = Machine(cores=2, memory_mb=100, descriptors=1024, ports=1000)
    found = small.lacks(plan)
    assert ["cores" in found[0], "memory" in found[1], "files" in found[2], "ports" in found[3]] == [True] * 4
    assert Machine(64, 64_000, None, None).lacks(plan) == []
    here = Machine.here()
    assert here.cores >= 1
    assert here.memory_mb > 0


@pytest.mark.parametrize(
    "load",
    [Load(1, 1.0), Load(2000, 40.0), Load(1_000_000, 1000.0, 0.25, 32_000, 100_000, 30)],
    ids=["one", "example", "huge"],
)
def test_a_plan_fits_a_terminal(load: Load) -> None:
    shown = lines(plan_for(load, COST), COST, Machine(2, 100.0, 100, 10))
    assert max(map(len, shown)) <= 80
    text = "\n".join(shown)
    assert f"-u {load.concurrency}" in text
    assert "made up" in text


def test_what_the_documentation_says_of_one_process() -> None:
    """docs/distributed.md names how busy 1,700 streams keep it: to be written anew with new measurements."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "distributed.md").read_text(encoding="utf-8")
    (streams, speed, percent), *_ = re.findall(
        r"([\d,]+) streams of (\d+) tokens/s keep that core\s+(\d+) % busy", text
    )
    plan = plan_for(Load(int(streams.replace(",", "")), float(speed)), Cost.default())
    assert (plan.workers, round(plan.busy * 100)) == (1, int(percent))
