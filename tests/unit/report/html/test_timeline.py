"""What happened when."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from loadgen.metrics import ColumnBuilder
from loadgen.metrics.gputrack import GpuTrack
from loadgen.metrics.turns import Turn
from loadgen.report.html.timechart import time_chart
from loadgen.report.html.timeline import course, step_of
from loadgen.report.load import EngineData, load_run
from tests.support.madeups import FAST, SLOW, START_NS, made_run

S = 10**9


def steady(start_s: float, seconds: int, per_s: int = 10) -> EngineData:
    """One request: its tokens come evenly, none exactly at the edge of a second; its turn is as long."""
    builder = ColumnBuilder()
    us = [int((n + 0.5) / per_s * 1e6) for n in range(seconds * per_s)]
    builder.add(
        {
            "sent_ns": START_NS + int(start_s * S),
            "event_us": us,
            "output_tokens": len(us),
            "ttft_ms": us[0] / 1e3,
        }
        | {"complete_ms": seconds * 1e3}
    )
    begin = START_NS + int(start_s * S)
    return EngineData(builder.build(), [Turn(0, 0, begin, begin + seconds * S, float(seconds))], {})


def test_a_steady_stream() -> None:
    engine = course({"e": steady(3.0, 4)}, [], START_NS).engines["e"]
    assert engine.turns == [(3.0, 7.0, True)]
    assert engine.tokens_per_s.x[:-1] == [3.5, 4.5, 5.5, 6.5]
    assert engine.tokens_per_s.y == [10, 10, 10, 10, None]  # None: the line ends with the turn
    assert engine.in_flight.y == [1, 1, 1, 1, None]
    assert (engine.ttft_ms.x, engine.ttft_ms.y) == ([3.5, 3.5], [50, None])


def test_a_long_turn_has_wider_steps() -> None:
    run = course({"e": steady(0.0, 4000, per_s=1)}, [], START_NS)
    assert run.step_s == 5
    assert run.engines["e"].tokens_per_s.y[:-1] == [1.0] * 800


@pytest.mark.parametrize(("seconds", "step"), [(0, 1), (1500, 1), (1501, 2), (86_400, 60), (10**9, 3600)])
def test_steps(seconds: float, step: int) -> None:
    assert step_of(seconds) == step


def test_gpus_on_the_same_axis() -> None:
    t = START_NS + np.arange(-60, 15) * S  # sampled before the run, too
    clock = np.where(np.arange(75) == 70, np.nan, 1500.0)
    track = GpuTrack(
        t,
        np.zeros(75),
        np.full(75, 650.0),
        course={"sm_clock_mhz": clock, "temperature_c": np.full(75, np.nan)},
        reasons={"hw_slowdown": np.array([1, 62, 63]), "sw_power_cap": np.arange(75)},
        facts={"gpu": 0, "name": "NVIDIA H200", "host": "h", "power_limit_w": 700.0},
    )
    (gpu,) = course({"e": steady(1.0, 8)}, [track], START_NS).gpus
    assert gpu.name == "GPU 0 (h NVIDIA H200)"
    assert set(gpu.lines) == {"sm_clock_mhz", "power_w"}  # what is never known has no line
    assert (gpu.lines["power_w"].x[0], gpu.lines["power_w"].x[-1]) == (-5.0, 14.0)
    assert None in gpu.lines["sm_clock_mhz"].y[:-1]
    assert gpu.held.x[:-1] == [2.0, 3.0]  # hardware held it back, not the usual power cap
    assert gpu.power_limit_w == 700.0


def test_the_chart(tmp_path: Path) -> None:
    data = load_run(made_run(tmp_path, (FAST, SLOW), blocks=2, gpus=2))
    chart = time_chart(course(data.engines, data.gpus, START_NS), {"vllm": 0, "llamacpp": 1})
    assert chart is not None
    titles = [a["text"] for a in chart.layout["annotations"]]
    assert titles == [
        "throughput, tokens/s",
        "requests in flight",
        "TTFT, ms",
        "GPU clock, MHz",
        "GPU temperature, °C",
        "GPU power, W",
        "GPU memory in use, GiB",
    ]
    assert len(chart.layout["shapes"]) == 4  # a band a turn
    domains = [chart.layout[f"yaxis{n or ''}"]["domain"] for n in (0, 2, 3, 4, 5, 6, 7)]
    for upper, lower in itertools.pairwise(domains):
        assert lower[1] < upper[0]
    assert domains[0][1] == 1
    assert domains[-1][0] == pytest.approx(0, abs=1e-9)
    assert {t["xaxis"] for t in chart.data} == {"x"}
    memory = [t for t in chart.data if t["yaxis"] == "y7"]
    assert [t["y"][0] for t in memory] == [pytest.approx(60.0, rel=1e-4)] * 2


def test_nothing_to_draw() -> None:
    assert time_chart(course({}, [], START_NS), {}) is None
