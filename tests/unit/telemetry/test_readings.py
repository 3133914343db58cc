"""Fields and units against a recording of an H200, whose raw numbers were read by other code."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from loadgen.telemetry import reasons
from loadgen.telemetry.nvml import Device, GpuLost, NvmlError, load, open_devices
from loadgen.telemetry.readings import FAST, SLOW, STATIC, cuda_version, processes
from loadgen.telemetry.rows import SAMPLE_FIELDS, existing, facts_row, sample_row
from tests.support.telemetry_child import FAKE_NVML, ROOT

RECORDING = [json.loads(line) for line in (ROOT / "tests/fixtures/nvml/h200.jsonl").read_text().splitlines()]


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("fake_pynvml", FAKE_NVML / "pynvml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("FAKENVML_START_S", "9.0")
    module.nvmlInit()
    return module


def test_every_call_and_constant_exists_in_the_real_module_and_in_the_fake_one(nvml: ModuleType) -> None:
    real = importlib.import_module("pynvml")
    for reading in (*FAST, *SLOW, *STATIC):
        for name in (*reading.calls, *reading.args):
            assert hasattr(real, name), name
            assert hasattr(nvml, name), name
        for name in reading.args:
            assert getattr(real, name) == getattr(nvml, name)


def test_reasons_are_the_drivers_bits() -> None:
    real = importlib.import_module("pynvml")
    ours = {name.replace("_", ""): bit for bit, name in reasons.REASONS.items()}
    prefix = "nvmlClocksEventReason"
    theirs = {n[len(prefix) :].lower(): v for n, v in vars(real).items() if n.startswith(prefix)}
    aliases = {"all", "none", "userdefinedclocks"}
    assert ours == {name: bit for name, bit in theirs.items() if name not in aliases}


def test_a_sample_under_load(nvml: ModuleType) -> None:
    device = Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0))
    values = device.sample()
    # 9 s in: bf16 matrix products at the power cap.
    raw = min(
        (row for row in RECORDING[1:] if row["phase"] == "load"),
        key=lambda row: abs(row["energy"] / 1000 - values["energy_j"]),
    )
    assert values["energy_j"] == pytest.approx(raw["energy"] / 1000)
    assert values["power_w"] == pytest.approx(690, rel=0.1)  # of 700
    assert values["throttle_mask"] == 4
    assert values["throttle_reasons"] == ["sw_power_cap"]
    assert 1000 < values["sm_clock_mhz"] < 1700
    assert values["memory_clock_mhz"] == 3201
    assert values["utilization_percent"] in (99, 100)
    assert values["memory_used_bytes"] == 1839071232 - 644939776  # without what the driver keeps
    assert values["processes"] == [{"pid": 416, "memory_bytes": 1184890880}]
    assert 50 < values["temperature_c"] < 65
    slow = device.slow_sample()
    assert slow["pcie_generation"] == 5
    assert slow["pcie_width"] == 16
    assert 6_000_000 < slow["pcie_tx_bytes_per_s"] < 8_000_000  # NVML said some 6,600 KB/s
    assert (slow["ecc_corrected"], slow["ecc_uncorrected"]) == (0, 0)
    assert "fan_percent" not in slow
    assert device.unsupported == {"fan_percent"}
    assert set(values) | set(slow) | {"fan_percent"} == set(SAMPLE_FIELDS)


def test_facts(nvml: ModuleType) -> None:
    facts = Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0)).facts()
    assert facts["name"] == "NVIDIA H200"
    assert facts["compute_capability"] == "9.0"
    assert facts["cuda"] == "13.0"
    assert facts["driver"] == "580.159.04"
    assert facts["power_limit_w"] == 700.0
    assert facts["temperature_slowdown_c"] == 89
    assert facts["ecc_enabled"] is True
    assert facts["mig_enabled"] is False
    assert facts["memory_reserved_bytes"] == 644939776


def test_a_driver_that_does_not_tell_its_own_share(nvml: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKENVML_ERRORS", "nvmlDeviceGetMemoryInfo_v2=13")  # function not found
    device = Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0))
    assert device.sample()["memory_used_bytes"] == 1839071232
    facts = device.facts()
    assert facts["memory_total_bytes"] == 150754820096
    assert "memory_reserved_bytes" not in facts


@pytest.mark.parametrize(("number", "text"), [(13000, "13.0"), (12080, "12.8"), (11040, "11.4")])
def test_cuda_version(number: int, text: str) -> None:
    assert cuda_version(number) == text


def test_memory_that_nvml_does_not_tell_is_absent() -> None:
    found = [
        SimpleNamespace(pid=7, usedGpuMemory=None),
        SimpleNamespace(pid=5, usedGpuMemory=2**64 - 1),
        SimpleNamespace(pid=6, usedGpuMemory=0),
    ]
    assert processes(found) == [{"pid": 5}, {"pid": 6, "memory_bytes": 0}, {"pid": 7}]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (3, None),  # not supported: the facts' `unsupported` says so
        (4, "GPU 0: power_w needs more rights than this user has"),
        (10, "GPU 0: power_w could not be read: Timeout"),
    ],
)
def test_a_call_that_fails_leaves_its_field_out(
    nvml: ModuleType, monkeypatch: pytest.MonkeyPatch, code: int, expected: str | None
) -> None:
    monkeypatch.setenv("FAKENVML_ERRORS", f"nvmlDeviceGetPowerUsage={code}")
    device = Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0))
    for _ in range(3):
        assert "power_w" not in device.sample()
    assert device.take_notes() == ([expected] if expected else [])
    monkeypatch.delenv("FAKENVML_ERRORS")
    assert ("power_w" in device.sample()) == (code == 10)  # a time-out passes, the others stay
    assert ("power_w" in device.unsupported) == (code != 10)


@pytest.mark.parametrize("code", [9, 15, 16])
def test_a_lost_gpu_is_no_missing_field(nvml: ModuleType, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setenv("FAKENVML_ERRORS", f"nvmlDeviceGetPowerUsage={code}")
    with pytest.raises(GpuLost, match="GPU 0 gives no samples: "):
        Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0)).sample()


def test_older_drivers_call_it_throttle_reasons(nvml: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKENVML_ERRORS", "nvmlDeviceGetCurrentClocksEventReasons=13")
    device = Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0))
    assert device.sample()["throttle_reasons"] == ["sw_power_cap"]
    monkeypatch.delattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons")  # so may the Python package be
    assert device.sample()["throttle_mask"] == 4
    assert Device(nvml, 0, nvml.nvmlDeviceGetHandleByIndex(0)).sample()["throttle_mask"] == 4
    assert device.unsupported == set()


@pytest.mark.parametrize(
    ("errors", "match"),
    [
        ("nvmlInit=12", "no NVIDIA driver here"),
        ("nvmlInit=9", "installed but not loaded"),
        ("nvmlInit=4", "may not use"),
        ("nvmlInit=18", "restart the machine"),
        ("nvmlInit=999", "cannot be used"),
    ],
)
def test_no_nvml_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, nvml: ModuleType, errors: str, match: str
) -> None:
    monkeypatch.setenv("FAKENVML_ERRORS", errors)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    with pytest.raises(NvmlError, match=match):
        load()


def test_without_the_package_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlError, match="nvidia-ml-py"):
        load()


def test_gpus_are_picked_by_index(nvml: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKENVML_GPUS", "4")
    devices, notes = open_devices(nvml, (1, 3, 7))
    assert [d.index for d in devices] == [1, 3]
    assert notes == ["there is no GPU 7 here, GPUs 0 to 3"]
    assert [d.index for d in open_devices(nvml)[0]] == [0, 1, 2, 3]
    monkeypatch.setenv("FAKENVML_ERRORS", "nvmlDeviceGetHandleByIndex=15@2")
    monkeypatch.setenv("FAKENVML_GPUS", "0")
    with pytest.raises(NvmlError, match="no GPU that it drives"):
        open_devices(nvml)


def test_rows_leave_out_what_does_not_exist() -> None:
    assert existing({"a": None, "b": float("nan"), "c": float("inf"), "d": 0, "e": False, "f": []}) == {
        "d": 0,
        "e": False,
        "f": [],
    }
    row = sample_row(5, "h", 1, {"power_w": None, "pstate": 0}, source="nvml", cost_ms=1.23456)
    head = {"kind": "sample", "t_ns": 5, "host": "h", "gpu": 1, "source": "nvml"}
    assert row == {**head, "pstate": 0, "cost_ms": 1.235}
    facts = facts_row(5, "h", 1, {"name": "x"}, source="nvml", unsupported=["b", "a"])
    assert facts["unsupported"] == ["a", "b"]
