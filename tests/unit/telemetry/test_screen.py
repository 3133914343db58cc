"""What a person sees of GPUs: 80 columns, nothing cut but names."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from loadgen.telemetry.digest import Digest
from loadgen.telemetry.screen import facts_line, live, plain_line

GIB = 2**30
FACTS = {
    "kind": "facts",
    "host": "h",
    "gpu": 0,
    "source": "nvml",
    "name": "NVIDIA H200",
    "memory_total_bytes": 150754820096,
    "driver": "580.159.04",
    "cuda": "13.0",
    "power_limit_w": 700.0,
}
LOADED = {
    "kind": "sample",
    "host": "h",
    "gpu": 0,
    "source": "nvml",
    "utilization_percent": 100,
    "memory_busy_percent": 61,
    "memory_used_bytes": 62 * GIB,
    "temperature_c": 61,
    "power_w": 691.2,
    "sm_clock_mhz": 1455,
    "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown", "hw_slowdown"],
    "processes": [
        {"pid": 5, "engine": "vllm", "name": "VLLM::EngineCore", "memory_bytes": 47 * GIB},
        {"pid": 6, "name": "llama-server"},
        {"pid": 777},
    ],
}


def shown(*rows: dict[str, Any], notes: tuple[str, ...] = ()) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=80).print(live(rows, [FACTS], notes, "10:00:00"))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_gpu_under_load() -> None:
    lines = shown(LOADED)
    assert all(len(line) <= 80 for line in lines)
    (gpu,) = [line for line in lines if "691" in line]
    assert gpu.split()[:9] == ["0", "100", "%", "61", "%", "62.0/140.4", "61", "691/700", "1455"]
    text = " ".join(" ".join(lines).split())
    assert "sw power cap," in text
    assert "slowdown" in text
    assert [line.split() for line in lines if "vllm" in line or "pid 777" in line] == [
        ["vllm", "47.0"],
        ["pid", "777", "-"],
    ]


def test_what_is_not_known_is_a_dash() -> None:
    bare = {"kind": "sample", "host": "h", "gpu": 0, "source": "nvml"}
    (line,) = [line for line in shown(bare) if line.startswith("0 ")]
    assert line.split() == ["0", "-", "-", "-/140.4", "-", "-/700", "-"]
    assert "no sample yet" in shown()


def test_hosts_and_instances_are_told_apart() -> None:
    lines = shown(LOADED, {**LOADED, "host": "another-node.example.org", "mig_instance": "1g.10gb/7"})
    assert any(line.startswith("h 0 ") for line in lines)
    assert any("0 1g.10gb/7" in line for line in lines)


def test_what_a_driver_or_server_says_is_no_markup() -> None:
    lines = shown({**LOADED, "host": "h"}, notes=("GPU 0: [red]x\x1b[31m",))
    assert any("[red]x?[31m" in line for line in lines)


def test_lines_for_a_log() -> None:
    assert facts_line(FACTS) == "GPU 0: NVIDIA H200, 140.4 GiB, driver 580.159.04, CUDA 13.0, limit 700.0 W"
    line = plain_line({**LOADED, "throttle_reasons": ["gpu_idle"]})
    assert line == "h GPU 0: busy 100 % memory 62.0 GiB 61 C 691 W SM 1455 MHz idle"


def test_a_recording_in_a_sentence() -> None:
    digest = Digest()
    for power, energy, reasons in (
        (100.0, 5.0, ["gpu_idle"]),
        (300.0, 105.0, ["sw_power_cap"]),
        (200.0, 2.0, []),
    ):
        digest.add({**LOADED, "power_w": power, "energy_j": energy, "throttle_reasons": reasons})
    digest.add(FACTS)
    (line,) = digest.lines()
    # The counter went down once (a driver loaded anew): what came after its restart is not guessed.
    expected = "GPU 0: 3 samples, mean 100.0 % busy, mean 200.0 W, 100.0 J, at most 61.0 C, 62.0 GiB, "
    assert line == expected + "sw power cap in 33.3 % of them"


@pytest.mark.parametrize("row", [{"kind": "note", "text": "x"}, {**LOADED, "power_w": "much"}])
def test_rows_that_tell_nothing(row: dict[str, Any]) -> None:
    digest = Digest()
    digest.add(row)
    assert all("W" not in line for line in digest.lines())
