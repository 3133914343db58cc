"""What counts of windows.jsonl and gpu.jsonl: measured time, under load, away from the edges.

The GPU rows are those of a real recording (an H200: idle, under a power cap, idle). It shows neither heat nor
hardware slow-down: where a test needs them, they are put into its rows.
"""

from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.metrics.turns import Turn
from loadgen.validity import Level, check_run, telemetry
from loadgen.validity.generator_rows import generator_load
from loadgen.validity.gpu_rows import gpu_load
from tests.unit.validity.made import TEN_TURNS, S, evidence

FIXTURE = Path(__file__).parents[2] / "fixtures" / "nvml" / "h200.jsonl"
NAMES = {0x1: "gpu_idle", 0x4: "sw_power_cap"}
FACTS = {"kind": "facts", "host": "box", "gpu": 0, "source": "nvml", "max_sm_clock_mhz": 1980}


def sample(t_s: float, reasons: list[str], busy: float | None = 100.0, **more: Any) -> dict[str, Any]:
    values = {"throttle_reasons": reasons, "sm_clock_mhz": 1485, "utilization_percent": busy, **more}
    row = {"kind": "sample", "t_ns": int(t_s * S), "host": "box", "gpu": 0, "source": "nvml", **values}
    return {k: v for k, v in row.items() if v is not None}


def recording() -> tuple[list[dict[str, Any]], Turn, Turn]:
    """The recording as rows, a turn that is its load, and one around all of it."""
    raw = [orjson.loads(line) for line in FIXTURE.read_bytes().splitlines()][1:]
    start = raw[0]["t"]
    rows = [
        sample(
            (r["t"] - start) / S,
            [name for bit, name in NAMES.items() if r["reasons"] & bit],
            r["util"]["gpu"],
            sm_clock_mhz=r["sm"],
        )
        for r in raw
    ]
    load = [(r["t"] - start) for r in raw if r["phase"] == "load"]
    return rows, Turn(0, 0, load[0], load[-1], 0.0), Turn(0, 0, 0, rows[-1]["t_ns"], 0.0)


def test_a_real_power_cap_is_noted_with_the_clock_it_cost() -> None:
    rows, load, everything = recording()
    for turn in (load, everything):  # idle samples in a turn are not under load
        (gpu,) = gpu_load([FACTS, *rows], {"a": [turn]})
        held = gpu.reasons["sw_power_cap"]
        assert set(gpu.reasons) == {"sw_power_cap"}
        assert 50 <= held.samples <= gpu.samples <= held.samples + 3
        assert held.clock_mhz == pytest.approx(1461, abs=10)  # the longer turn has a sample at 1965 MHz
        found = check_run(evidence(gpus=[gpu]))
        assert found.level == Level.VALID
        (note,) = found.findings
        assert note.evidence.startswith("GPU 0 of box: sw_power_cap in ")
        assert "of 1,980 MHz (2" in note.evidence  # 26.2 or 25.8 %


@pytest.mark.parametrize(
    "reason", ["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_slowdown", "hw_power_brake_slowdown"]
)
def test_a_gpu_that_had_to_slow_down_voids_the_run(reason: str) -> None:
    rows, load, _ = recording()
    under_load = [r for r in rows if load.start_ns <= r["t_ns"] <= load.end_ns]
    for row in under_load[20:26]:  # made: heat in the middle of the real load
        row["throttle_reasons"] = [*row["throttle_reasons"], reason]
        row["sm_clock_mhz"] = 990
    found = check_run(evidence(gpus=gpu_load([FACTS, *rows], {"a": [load]})))
    assert found.level == Level.VOID
    # Of 60 samples the first and the last are left out, and a third in which nothing was running yet.
    assert f"{reason} in 6 of 57 samples under load (10.5 %; " in found.findings[0].evidence
    assert "a 6), SM clock 990.0 of 1,980 MHz (50.0 % lost)" in found.findings[0].evidence


def test_one_sample_of_many_makes_a_run_suspect() -> None:
    turn = Turn(0, 0, 0, 400 * S, 400.0)
    rows = [sample(t, ["hw_slowdown"] if t == 77 else []) for t in range(400)]
    assert check_run(evidence(gpus=gpu_load(rows, {"a": [turn]}))).level == Level.SUSPECT


def test_outside_turns_at_their_edges_and_idle_nothing_counts() -> None:
    hot = ["hw_thermal_slowdown"]
    rows = []
    for t in range(200):
        in_turn = t % 20 < 18
        edge = t % 20 in (0, 18)  # a turn has the samples of 0 to 18 s
        idle = t % 20 == 9
        rows.append(sample(t, [*hot, "gpu_idle"] if idle else hot if edge or not in_turn else []))
        rows.append({**sample(t, hot, busy=3.0), "gpu": 1})
    (gpu,) = gpu_load(rows, TEN_TURNS)
    assert (gpu.gpu, gpu.reasons) == ("0", {})
    assert gpu.samples == 10 * 16


def test_samples_are_of_the_engine_whose_turn_it_is() -> None:
    (gpu,) = gpu_load([sample(t, ["hw_slowdown"]) for t in range(200)], TEN_TURNS)
    assert gpu.reasons["hw_slowdown"].engines == {"a": 5 * 17, "b": 5 * 17}
    assert gpu.samples == 170
    # In parallel both have it, and it is one sample all the same.
    both = {"a": [Turn(0, 0, 0, 50 * S, 50.0)], "b": [Turn(1, 0, 0, 50 * S, 50.0)]}
    (gpu,) = gpu_load([sample(t, ["hw_slowdown"]) for t in range(51)], both)
    assert (gpu.samples, gpu.reasons["hw_slowdown"].engines) == (49, {"a": 49, "b": 49})


def test_what_a_card_does_not_tell_is_not_guessed() -> None:
    turn = {"a": [Turn(0, 0, 0, 50 * S, 50.0)]}
    silent = [{k: v for k, v in sample(t, []).items() if k != "throttle_reasons"} for t in range(50)]
    (gpu,) = gpu_load(silent, turn)
    assert (gpu.samples, gpu.reasons) == (0, {})
    assert check_run(evidence(gpus=[gpu])).findings == ()
    assert gpu_load([{k: v for k, v in r.items() if k != "sm_clock_mhz"} for r in silent], turn) == []
    (gpu,) = gpu_load([sample(t, ["hw_slowdown"], None, sm_clock_mhz=None) for t in range(51)], turn)
    assert gpu.reasons["hw_slowdown"].clock_mhz is None
    assert "SM clock" not in check_run(evidence(gpus=[gpu])).findings[0].evidence
    stepped = {"a": [Turn(0, 0, 0, 50 * S, 50.0, clock_stepped=True)]}
    assert gpu_load([sample(t, ["hw_slowdown"]) for t in range(51)], stepped) == []


def test_the_generator_is_judged_by_whole_measured_seconds() -> None:
    rows = [{"measured_s": 1.0, "cpu_percent": 10.0 + t, "loop_lag_ms": 1.0} for t in range(20)]
    rows += [{"measured_s": 0.3, "cpu_percent": 100.0, "loop_lag_ms": 900.0}, {"cpu_percent": 100.0}]
    load = generator_load(rows)
    assert load is not None
    assert (load.seconds, load.cpu_percent, load.cpu_percent_p95, load.loop_lag_ms_p95) == (20, 19.5, 28, 1)
    assert generator_load([{"cpu_percent": 100.0}]) is None
    nothing = generator_load([{"measured_s": 1.0}])
    assert nothing is not None
    assert (nothing.cpu_percent, nothing.loop_lag_ms_p95) == (None, None)


def test_workers_seconds_are_whole_when_their_shares_are_and_count_once() -> None:
    """Two workers' rows, of which the master's file and the workers' own hold each one."""
    rows = [
        {
            "t_ns": t * S,
            "engine": "a",
            "worker": worker,
            "workers": 2,
            "measured_s": 0.5 if t else 0.1,
            "cpu_percent": cpu,
        }
        for t in range(3)
        for worker, cpu in (("w0", 10.0), ("w1", 50.0))
    ]
    load = generator_load(rows * 2)
    assert load is not None
    assert (load.seconds, load.cpu_percent, load.cpu_percent_p95) == (4, 30.0, 50.0)


def test_files_of_a_run(tmp_path: Path) -> None:
    assert telemetry(tmp_path, TEN_TURNS) == (None, [])
    for name, cpu in (("windows.jsonl", 20.0), ("windows-w1.jsonl", 40.0)):
        (tmp_path / name).write_bytes(orjson.dumps({"measured_s": 1, "cpu_percent": cpu}) + b'\n{"torn')
    (tmp_path / "gpu.jsonl").write_bytes(
        b"\n".join(orjson.dumps(r) for r in [FACTS, *(sample(t, ["sw_power_cap"]) for t in range(18))])
    )
    generator, gpus = telemetry(tmp_path, TEN_TURNS)
    assert generator is not None
    assert generator.cpu_percent == 30
    assert [(g.name, g.samples, g.max_sm_clock_mhz) for g in gpus] == [("GPU 0 of box", 16, 1980)]
