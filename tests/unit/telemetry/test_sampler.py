"""Beats, and eight GPUs whose driver is slow."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.telemetry.beat import Beat, next_beat
from loadgen.telemetry.nvml import GpuLost
from loadgen.telemetry.sampler import GpuSampler
from tests.support.telemetry_child import TelemetryChild
from tests.support.waiting import wait_for


@given(st.integers(0, 10**6), st.integers(1, 100), st.integers(0, 10**7))
def test_the_next_beat_lies_ahead_by_an_interval_at_most(start: int, interval: int, later: int) -> None:
    now = start + later
    n, at = next_beat(start, interval, now)
    assert now < at <= now + interval
    assert (at - start) % interval == 0
    assert n == (at - start) // interval


def test_a_beat_skips_what_it_has_missed() -> None:
    """Work of 2.5 intervals: beats 0, 3, 6 are kept; the ones between are counted, not made up for."""
    now, done = [0.0], []

    def work() -> None:
        done.append(now[0])
        now[0] += 2.5
        if len(done) == 3:
            beat.ask_to_stop()

    class Clocked(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            now[0] += timeout or 0.0
            return self.is_set()

    beat = Beat("b", 1.0, work, clock=lambda: now[0])
    beat._stopped = Clocked()
    beat.run()
    assert done == [0.0, 3.0, 6.0]
    assert beat.missed == 2 * 3


class Device:
    """A GPU that does as it is told."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.unsupported = {"fan_percent", "driver"}
        self.lost = False

    def facts(self) -> dict[str, Any]:
        return {"name": "G"}

    def sample(self) -> dict[str, Any]:
        if self.lost:
            raise GpuLost("gone")
        return {"power_w": 1.0, "processes": [{"pid": 3}]}

    def slow_sample(self) -> dict[str, Any]:
        return {"pcie_width": 16}

    def take_notes(self) -> list[str]:
        return []


class Owner:
    def __call__(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**p, "engine": "e"} for p in processes]

    def take_notes(self) -> list[str]:
        return []


def test_slow_values_are_in_one_sample_and_in_the_latest() -> None:
    rows: list[Any] = []
    sampler = GpuSampler([Device(0)], host="h", interval_s=1.0, write=rows.append, owner=Owner())
    (facts,) = sampler.open()
    assert facts["unsupported"] == ["fan_percent"]
    gpu = sampler._gpus[0]
    for _ in range(3):
        gpu.beat()
    samples = [r for r in rows if r["kind"] == "sample"]
    assert ["pcie_width" in r for r in samples] == [True, False, False]
    assert samples[0]["processes"] == [{"pid": 3, "engine": "e"}]
    assert sampler.latest()[0]["pcie_width"] == 16


def test_the_last_sample_is_taken_at_the_end() -> None:
    """So that a turn that has just ended lies between two samples, however slow the beat."""
    rows: list[Any] = []
    sampler = GpuSampler([Device(0), Device(1)], host="h", interval_s=1000.0, write=rows.append)
    sampler.open()
    sampler.start()
    wait_for(lambda: sum(r["kind"] == "sample" for r in rows) == 2)
    ended_ns = time.time_ns()
    sampler.stop()
    assert sorted(r["gpu"] for r in rows if r["kind"] == "sample" and r["t_ns"] >= ended_ns) == [0, 1]


def test_a_sample_that_is_old_is_not_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.telemetry.sampler.STALE_S", 0.0)
    sampler = GpuSampler([Device(0)], host="h", interval_s=0.001, write=lambda row: None)
    sampler.open()
    sampler._gpus[0].beat()
    wait_for(lambda: sampler.latest() == [])


def test_a_gpu_that_comes_back_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadgen.telemetry.sampler.LOST_BEAT_S", 0.0)
    rows: list[Any] = []
    device = Device(4)
    sampler = GpuSampler([device], host="h", interval_s=1.0, write=rows.append)
    sampler.open()
    gpu = sampler._gpus[0]
    for device.lost in (False, True, True, False):
        gpu.beat()
    texts = [(r["gpu"], r["text"]) for r in rows if r["kind"] == "note"]
    assert texts == [(4, "gone"), (4, "GPU 4 gives samples again")]
    assert sum(r["kind"] == "sample" for r in rows) == 2


def test_eight_gpus_of_50_ms_calls_hold_a_beat_of_one_second(tmp_path: Path) -> None:
    """Every NVML call takes 50 ms, ten of them a sample: one after the other, eight GPUs would take 4 s. A
    machine that is busy with something else may cost a beat here and there."""
    with TelemetryChild(tmp_path, {"interval_s": 1.0}, gpus=8, call_ms=50) as child:
        assert len(child.ready["gpus"]) == 8
        wait_for(lambda: len(child.rows("sample")) >= 8 * 6)
        assert child.stop() == 0
        rows = child.rows("sample")
    for gpu in range(8):
        of = [r for r in rows if r["gpu"] == gpu]
        beats = round((of[-1]["t_ns"] - of[0]["t_ns"]) / 1e9) + 1
        assert len(of) >= 0.7 * beats
        assert all(r["cost_ms"] >= 500 for r in of)
