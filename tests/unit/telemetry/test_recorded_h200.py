"""The sampler's own output from a real H200, idle, loaded and idle again: is it what such a card does?"""

from __future__ import annotations

import bisect
import csv
import itertools
import statistics
from datetime import datetime, timezone
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


@pytest.mark.parametrize(("name", "beat_s"), [("sampled_h200.jsonl", 1.0), ("steps_h200.jsonl", 0.5)])
def test_the_beat_is_kept(name: str, beat_s: float) -> None:
    _, samples = recording(name)
    # Without the first and the last, which are taken when sampling begins and ends.
    gaps = [(b["t_ns"] - a["t_ns"]) / 1e9 for a, b in itertools.pairwise(samples[1:-1])]
    assert max(abs(g - beat_s) for g in gaps) < 0.005


def test_twenty_seconds_of_load_are_seen_as_such() -> None:
    _, samples = recording("sampled_h200.jsonl")
    loaded = [s for s in samples if s["utilization_percent"] > 50]
    assert len(loaded) == pytest.approx(20, abs=1)


def counted_and_integrated_j(samples: list[dict[str, Any]]) -> tuple[float, float]:
    integrated = sum(
        (a["power_w"] + b["power_w"]) / 2 * (b["t_ns"] - a["t_ns"]) / 1e9
        for a, b in itertools.pairwise(samples)
    )
    return samples[-1]["energy_j"] - samples[0]["energy_j"], integrated


@pytest.mark.parametrize("name", ["sampled_h200.jsonl", "steps_h200.jsonl"])
def test_power_is_what_the_energy_counter_grows_by(name: str) -> None:
    counted, integrated = counted_and_integrated_j(recording(name)[1])
    assert integrated == pytest.approx(counted, rel=0.01)


def test_power_is_an_average_of_the_second_before() -> None:
    # So it trails a step by half a second on average: the energy counter, which does not, is what to use for
    # short turns. Looked at until the middle of the full load, which began from idle.
    _, samples = recording("steps_h200.jsonl")
    full = [s for s in samples if s["throttle_reasons"] == ["sw_power_cap"]]
    begin, end = full[0]["t_ns"] - 4 * 10**9, full[len(full) // 2]["t_ns"]
    stretch = [s for s in samples if begin <= s["t_ns"] <= end]
    counted, integrated = counted_and_integrated_j(stretch)
    step_w = stretch[-1]["power_w"] - stretch[0]["power_w"]
    assert step_w > 500
    assert counted - integrated == pytest.approx(0.5 * step_w, rel=0.35)


def test_under_load_the_power_cap_takes_clock() -> None:
    facts, samples = recording("sampled_h200.jsonl")
    steady = [s for s in samples if s["utilization_percent"] >= 99][2:-1]
    assert (facts["max_sm_clock_mhz"], facts["power_limit_w"]) == (1980, 700.0)
    assert all(s["throttle_reasons"] == ["sw_power_cap"] for s in steady)
    assert all(1350 <= s["sm_clock_mhz"] <= 1600 for s in steady)
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


def nvidia_smi() -> list[dict[str, str]]:
    with open(FOLDER / "steps_h200_smi.csv", newline="") as f:
        return list(csv.DictReader(f, skipinitialspace=True))


@pytest.mark.parametrize(
    ("column", "field", "scale", "within", "share"),
    [
        ("memory.used [MiB]", "memory_used_bytes", 2**20, 1, 1.0),
        ("memory.total [MiB]", "memory_total_bytes", 2**20, 1, 1.0),
        ("clocks.current.memory [MHz]", "memory_clock_mhz", 1, 0, 1.0),
        ("temperature.gpu", "temperature_c", 1, 1, 0.9),
        ("utilization.gpu [%]", "utilization_percent", 1, 1, 0.9),
        ("utilization.memory [%]", "memory_busy_percent", 1, 1, 0.9),
        ("clocks.current.sm [MHz]", "sm_clock_mhz", 1, 15, 0.85),
        ("power.draw [W]", "power_w", 1, 3, 0.9),
    ],
)
def test_it_is_what_nvidia_smi_said_at_the_same_time(
    column: str, field: str, scale: float, within: float, share: float
) -> None:
    """What nvidia-smi says between two samples lies between theirs, to its resolution; what moves quickly, as
    clocks and power at the edges of a load, may have been elsewhere for a moment."""
    _, samples = recording("steps_h200.jsonl")
    times = [s["t_ns"] for s in samples]
    agree = []
    for row in nvidia_smi():
        at = datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
        i = bisect.bisect(times, int(at.timestamp() * 1e9))
        if 0 < i < len(samples):
            low, high = sorted(s[field] / scale for s in samples[i - 1 : i + 1])
            agree.append(low - within <= float(row[column]) <= high + within)
    assert len(agree) > 150
    assert sum(agree) / len(agree) >= share


def test_reasons_and_state_are_those_of_nvidia_smi() -> None:
    _, samples = recording("steps_h200.jsonl")
    times = [s["t_ns"] for s in samples]
    agree = []
    for row in nvidia_smi():
        at = datetime.strptime(row["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)
        i = bisect.bisect(times, int(at.timestamp() * 1e9))
        if 0 < i < len(samples):
            around = samples[i - 1 : i + 1]
            agree.append(int(row["clocks_event_reasons.active"], 16) in {s["throttle_mask"] for s in around})
            assert row["pstate"] in {f"P{s['pstate']}" for s in around}
    assert sum(agree) / len(agree) >= 0.9
    slow = next(s for s in samples if "pcie_generation" in s)
    first = nvidia_smi()[0]
    assert (first["pcie.link.gen.current"], first["pcie.link.width.current"]) == (
        str(slow["pcie_generation"]),
        str(slow["pcie_width"]),
    )
    assert first["ecc.errors.uncorrected.volatile.total"] == str(slow["ecc_uncorrected"])


def test_a_process_has_the_memory_that_nvidia_smi_gives_it() -> None:
    _, samples = recording("steps_h200.jsonl")
    ours = {p["memory_bytes"] // 2**20 for s in samples for p in s["processes"]}
    theirs = [
        int(line.split(", ")[1])
        for line in (FOLDER / "steps_h200_apps.txt").read_text().splitlines()
        if ", " in line
    ]
    assert len(set(theirs)) >= 5  # its matrices, then four steps of memory
    assert set(theirs) <= ours
    assert max(theirs) > 120 * 1024
