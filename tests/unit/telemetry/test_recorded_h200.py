"""The sampler's own output from a real H200, idle, loaded and idle again: is it what such a card does?"""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path
from typing import Any

import orjson
import pytest

FOLDER = Path(__file__).parents[2] / "fixtures" / "nvml"
GIB = 2**30


def recording(name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    rows = [orjson.loads(line) for line in (FOLDER / name).read_bytes().splitlines()]
    assert [r["kind"] for r in rows] == ["facts"] + ["sample"] * (len(rows) - 1)
    return rows[0], rows[1:]


RECORDINGS = [("sampled_h200.jsonl", 1.0, 20), ("sampled_h200_fast.jsonl", 0.2, 8)]


@pytest.mark.parametrize(("name", "beat_s", "loaded_s"), RECORDINGS)
def test_the_beat_is_kept(name: str, beat_s: float, loaded_s: float) -> None:
    _, samples = recording(name)
    gaps = [(b["t_ns"] - a["t_ns"]) / 1e9 for a, b in itertools.pairwise(samples)]
    assert max(abs(g - beat_s) for g in gaps) < 0.005
    loaded = [s for s in samples if s["utilization_percent"] > 50]
    # Utilisation is of the time before the sample, so the edges may be a beat or two off.
    assert len(loaded) * beat_s == pytest.approx(loaded_s, abs=max(1.0, 2 * beat_s))


def counted_and_integrated_j(samples: list[dict[str, Any]]) -> tuple[float, float]:
    integrated = sum(
        (a["power_w"] + b["power_w"]) / 2 * (b["t_ns"] - a["t_ns"]) / 1e9
        for a, b in itertools.pairwise(samples)
    )
    return samples[-1]["energy_j"] - samples[0]["energy_j"], integrated


def test_power_is_what_the_energy_counter_grows_by() -> None:
    counted, integrated = counted_and_integrated_j(recording("sampled_h200.jsonl")[1])
    assert integrated == pytest.approx(counted, rel=0.01)


def test_power_is_an_average_of_the_second_before() -> None:
    # So it trails a step by half a second on average: the energy counter, which does not, is what to use for
    # short turns. This recording ends under load, 571 W above where it began.
    counted, integrated = counted_and_integrated_j(recording("sampled_h200_fast.jsonl")[1])
    assert counted - integrated == pytest.approx(0.5 * 571, rel=0.25)


@pytest.mark.parametrize(("name", "beat_s", "loaded_s"), RECORDINGS)
def test_under_load_the_power_cap_takes_clock(name: str, beat_s: float, loaded_s: float) -> None:
    facts, samples = recording(name)
    settled = round(1.5 / beat_s)  # power is an average of the second before
    steady = [s for s in samples if s["utilization_percent"] >= 99][settled:-1]
    assert (facts["max_sm_clock_mhz"], facts["power_limit_w"]) == (1980, 700.0)
    assert all(s["throttle_reasons"] == ["sw_power_cap"] for s in steady)
    assert all(1350 <= s["sm_clock_mhz"] <= 1500 for s in steady)
    assert statistics.fmean(s["power_w"] for s in steady) == pytest.approx(692, abs=8)
    assert all(s["temperature_c"] >= 50 for s in steady)


def test_idle_is_told_from_throttled() -> None:
    _, samples = recording("sampled_h200.jsonl")
    last = samples[-1]
    assert last["throttle_reasons"] == ["gpu_idle"]
    assert last["sm_clock_mhz"] < 1200  # below the rule that only counts under load
    assert (last["utilization_percent"], last["processes"]) == (0, [])


def test_memory_belongs_to_the_process_behind_the_engines_address() -> None:
    facts, samples = recording("sampled_h200.jsonl")
    loaded = next(s for s in samples if s["utilization_percent"] >= 99)
    (process,) = loaded["processes"]
    assert (process["engine"], process["port"], process["name"]) == ("fake", 8000, "python3")
    assert 20 * GIB < process["memory_bytes"] < 22 * GIB  # 20 GiB of its own, CUDA's context, matrices
    assert process["memory_bytes"] < loaded["memory_used_bytes"] < facts["memory_total_bytes"]
    assert facts["memory_total_bytes"] == 143771 * 2**20  # what nvidia-smi says of this card


def test_what_the_card_does_not_have_is_absent() -> None:
    facts, samples = recording("sampled_h200.jsonl")
    assert facts["unsupported"] == ["fan_percent"]
    assert not any("fan_percent" in s for s in samples)
    slow = [s for s in samples if "pcie_tx_bytes_per_s" in s]
    assert 0 < len(slow) < len(samples) / 2  # at a slower beat
    assert all((s["pcie_generation"], s["pcie_width"]) == (5, 16) for s in slow if "pcie_generation" in s)
