"""Joules, against numbers worked out by hand and a recording of two engines on an H200."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.energy import EngineEnergy, Meter, engine_energy
from loadgen.metrics.gputrack import gpu_tracks
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals

S = 10**9
T0 = 1_800_000_000 * S
FIXTURES = Path(__file__).parents[2] / "fixtures"


def sample(t_s: float, gpu: int = 0, **values: Any) -> dict[str, Any]:
    head = {"kind": "sample", "t_ns": T0 + round(t_s * S), "host": "h", "gpu": gpu, "source": "nvml"}
    return {**head, **values}


def turn(number: int, start_s: float, end_s: float, **more: Any) -> Turn:
    return Turn(number, number, T0 + round(start_s * S), T0 + round(end_s * S), end_s - start_s, **more)


def tenths(seconds: int) -> list[float]:
    return [n / 10 for n in range(10 * seconds + 1)]


def energy(rows: Sequence[dict[str, Any]], **turns: Sequence[Turn]) -> dict[str, EngineEnergy]:
    return engine_energy(gpu_tracks(rows), turns)


def test_the_counter_between_the_edges() -> None:
    """100 W, and 300 W from 10 s on: 2 s of the one and 5 s of the other."""
    rows = [sample(t, energy_j=50.0 + 100 * t + 200 * max(0, t - 10)) for t in tenths(21)]
    found = energy(rows, a=[turn(0, 8.0, 15.0)], b=[turn(1, 15.03, 20.5), turn(2, 1.0, 1.9)])
    assert found["a"].joules == {0: pytest.approx(2 * 100 + 5 * 300)}
    assert found["b"].joules == {1: pytest.approx(5.47 * 300)}
    assert found["b"].too_short == {2}  # less than ten samples
    assert found["b"].figures([(turn(2, 1.0, 1.9), Totals())])["turns_too_short"] == 1
    assert found["a"].source == "counter"
    parts = [
        (turn(0, 8, 15), Totals(seconds=7.0, tokens=3400.0, ok=17)),
        (turn(9, 0, 1), Totals(seconds=1.0)),
    ]
    assert found["a"].figures(parts) == {
        "gpus": 1,
        "gpus_named": False,
        "energy_j": pytest.approx(1700.0),
        "energy_source": "counter",
        "turns": 1,
        "joules_per_output_token": pytest.approx(0.5),
        "joules_per_request": pytest.approx(100.0),
        "mean_power_w": pytest.approx(1700 / 7),
    }


def test_power_where_there_is_no_counter() -> None:
    rows = [sample(t, power_w=100.0 + 10 * t) for t in tenths(10)]
    found = energy(rows, a=[turn(0, 2.0, 8.0)])["a"]
    assert (found.joules, found.source) == ({0: pytest.approx(6 * 150)}, "power")


def test_a_counter_that_stands_still_is_none() -> None:
    rows = [sample(t, power_w=100.0, energy_j=7.0) for t in tenths(20)]
    found = energy(rows, a=[turn(0, 2.0, 8.0)])["a"]
    assert (found.joules, found.source) == ({0: pytest.approx(600)}, "power")


def test_a_counter_that_starts_anew() -> None:
    """Between 4 s and 5 s the driver was loaded anew: that second is power's."""
    rows = [sample(t, power_w=100.0, energy_j=100.0 * (t if t < 5 else t - 5)) for t in tenths(10)]
    assert energy(rows, a=[turn(0, 2.0, 8.0)])["a"].joules == {0: pytest.approx(600)}


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0.0, 10.0, 1000.0),
        (5.0, 10.2, 520.0),  # 0.2 s of 5.2 s without samples: taken at the mean power of the rest
        (5.0, 10.4, None),
        (5.0, 12.0, None),
        (-3.0, 5.0, None),
        (20.0, 30.0, None),
        (5.0, 5.0, None),
    ],
)
def test_turns_beyond_the_samples(start: float, end: float, expected: float | None) -> None:
    rows = [sample(t, energy_j=100.0 * t) for t in tenths(10)]
    found = energy(rows, a=[turn(0, start, end)])["a"].joules.get(0)
    assert found == (None if expected is None else pytest.approx(expected, rel=0.001))


def test_a_gap_is_bridged_by_a_counter_and_not_by_power() -> None:
    times = [*range(5), *range(25, 30)]
    assert energy([sample(t, energy_j=100.0 * t) for t in times], a=[turn(0, 2, 27)])["a"].joules == {
        0: pytest.approx(2500)
    }
    assert energy([sample(t, power_w=100.0) for t in times], a=[turn(0, 2, 27)])["a"].joules == {}


def process(engine: str | None, memory: int) -> dict[str, Any]:
    return {"pid": 1, "memory_bytes": memory, **({"engine": engine} if engine else {})}


def test_an_engines_gpus_are_those_with_its_processes() -> None:
    rows = []
    for t in tenths(10):
        rows += [
            sample(t, 0, energy_j=100.0 * t, processes=[process("a", 40), process("a", 2 + int(t))]),
            sample(t, 1, energy_j=300.0 * t, processes=[process("a", 9), process("b", 70)]),
            sample(t, 2, energy_j=700.0 * t, processes=[process(None, 5)]),
        ]
    found = energy(rows, a=[turn(0, 0, 5)], b=[turn(1, 5, 10)], c=[turn(2, 0, 0)])
    assert found["a"].joules == {0: pytest.approx(5 * 400)}
    assert found["b"].joules == {1: pytest.approx(5 * 300)}
    assert (found["a"].gpus, found["a"].named, found["a"].peak_memory_bytes) == (2, True, 40 + 12 + 9)
    assert (found["c"].gpus, found["c"].named, found["c"].peak_memory_bytes) == (3, False, None)


def test_engines_measured_at_once_share_no_gpu() -> None:
    rows = []
    for t in tenths(10):
        rows += [
            sample(t, 0, energy_j=100.0 * t, processes=[process("a", 1)]),
            sample(t, 1, energy_j=300.0 * t, processes=[process("b", 1)]),
        ]
    at_once = {"a": [turn(0, 0, 10)], "b": [turn(1, 0, 10)]}
    apart = energy(rows, **at_once)
    assert (apart["a"].joules, apart["b"].joules) == ({0: pytest.approx(1000)}, {1: pytest.approx(3000)})
    nameless = [{k: v for k, v in row.items() if k != "processes"} for row in rows]
    together = energy(nameless, **at_once)
    assert (together["a"].joules, together["b"].joules) == ({}, {})


def test_a_clock_that_was_set_gives_no_energy() -> None:
    rows = [sample(t, energy_j=100.0 * t) for t in tenths(10)]
    assert energy(rows, a=[turn(0, 0, 10, clock_stepped=True)])["a"].joules == {}


def test_one_card_seen_twice_counts_once() -> None:
    """By NVML and by an exporter that calls the host otherwise; and as two MIG instances."""
    rows: list[dict[str, Any]] = []
    for source, host in (("dcgm", "pod-7"), ("nvml", "h")):
        rows.append({"kind": "facts", "host": host, "gpu": 0, "source": source, "uuid": "GPU-1"})
    for t in tenths(10):
        rows.append(sample(t, energy_j=100.0 * t))
        rows += [
            {**sample(t + 0.01, energy_j=100.0 * t), "host": "pod-7", "source": "dcgm", "mig_instance": m}
            for m in ("1g.10gb/7", "1g.10gb/8")
        ]
    found = energy(rows, a=[turn(0, 0, 10)])["a"]
    assert (found.joules, found.gpus) == ({0: pytest.approx(1000)}, 1)
    only_dcgm = [r for r in rows if r["source"] == "dcgm"]
    assert energy(only_dcgm, a=[turn(0, 1, 9)])["a"].joules == {0: pytest.approx(800)}


def test_no_samples_no_figures() -> None:
    assert energy([], a=[turn(0, 0, 1)]) == {}
    assert energy([sample(0)], a=[turn(0, 0, 1)])["a"].figures([]) == {"gpus": 1, "gpus_named": False}


@given(
    st.lists(st.tuples(st.floats(0.1, 3.0), st.floats(0.0, 700.0)), min_size=3, max_size=30),
    st.floats(0.0, 1.0),
)
def test_parts_of_a_turn_add_up(steps: list[tuple[float, float]], cut: float) -> None:
    t, joules, rows = 0.0, 0.0, [sample(0, energy_j=0.0)]
    for seconds, watts in steps:
        t, joules = t + seconds, joules + seconds * watts
        rows.append(sample(t, energy_j=joules))
    middle = t * (0.05 + 0.9 * cut)
    meter = Meter(gpu_tracks(rows)[0])
    edges = [T0 + round(at * S) for at in (0.0, middle, t)]
    first, second = (meter.between(a, b) for a, b in itertools.pairwise(edges))
    assert first is not None
    assert second is not None
    assert first + second == pytest.approx(joules, abs=1e-3)


def test_two_engines_on_an_h200() -> None:
    """vLLM with 16 requests at a time, then llama.cpp with one. Expected: the recorded counter at the samples
    next to the edges."""
    lines = (FIXTURES / "nvml/two_engines.jsonl").read_text().splitlines()
    raw = [json.loads(line) for line in lines]
    names = {4596: "vllm", 13871: "llamacpp"}
    rows = [
        {
            "kind": "sample",
            "t_ns": r["t"],
            "host": "h",
            "gpu": 0,
            "source": "nvml",
            "energy_j": r["energy"] / 1000,
            "power_w": r["power"] / 1000,
            "processes": [{"pid": p, "memory_bytes": m, "engine": names[p]} for p, m in r["procs"]],
        }
        for r in raw
    ]
    phases = {
        "vllm": [Turn(0, 0, 1796064533037798067, 1796064560293044394, 27.255)],
        "llamacpp": [Turn(1, 0, 1796064560315508277, 1796064592550488862, 32.235)],
    }
    found = engine_energy(gpu_tracks(rows), phases)
    assert found["vllm"].joules[0] == pytest.approx(4772, rel=0.005)
    assert found["llamacpp"].joules[1] == pytest.approx(6798, rel=0.005)
    assert found["vllm"].peak_memory_bytes == max(m for r in raw for p, m in r["procs"] if p == 4596)
    # 64 requests of 256 tokens.
    figures = found["vllm"].figures([(phases["vllm"][0], Totals(seconds=27.255, tokens=16384.0, ok=64))])
    assert figures["joules_per_output_token"] == pytest.approx(0.291, rel=0.01)
    by_power = engine_energy(gpu_tracks([{**r, "energy_j": None} for r in rows]), phases)
    assert by_power["vllm"].joules[0] == pytest.approx(4772, rel=0.03)
    assert by_power["vllm"].source == "power"
