"""NVML without a GPU: a module named pynvml that replays a recording. Put its folder first on PYTHONPATH.

The recording (FAKENVML_RECORDING, default tests/fixtures/nvml/h200.jsonl: idle until 6.5 s, under load at the
power cap until 19 s, idle until 24 s) plays in real time from nvmlInit on and then again from its start; its
energy goes on counting.

    FAKENVML_GPUS          how many there are, all the same but for index and UUID (1)
    FAKENVML_CALL_MS       what each device call costs at least (0)
    FAKENVML_START_S       where in the recording to begin (0)
    FAKENVML_UNSUPPORTED   calls that answer Not Supported, separated by commas
    FAKENVML_ERRORS        call=code[@GPU][#SECONDS], separated by commas: that error, on that GPU only, from
                           so many seconds after nvmlInit on; nvmlInit=12 is a machine without a driver
    FAKENVML_HANG          call[@GPU][#SECONDS], the same for calls that never come back
    FAKENVML_PIDS          process numbers to report instead of the recording's, separated by commas
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

NVML_CLOCK_SM = 1
NVML_CLOCK_MEM = 2
NVML_TEMPERATURE_GPU = 0
NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0
NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
NVML_TEMPERATURE_THRESHOLD_GPU_MAX = 3
NVML_PCIE_UTIL_TX_BYTES = 0
NVML_PCIE_UTIL_RX_BYTES = 1
NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
NVML_VOLATILE_ECC = 0
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_FUNCTION_NOT_FOUND = 13

_TEXTS = {
    3: "Not Supported",
    4: "Insufficient Permissions",
    9: "Driver Not Loaded",
    10: "Timeout",
    12: "NVML Shared Library Not Found",
    13: "Function Not Found",
    15: "GPU is lost",
}


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


class NVMLLibraryMismatchError(Exception):
    pass


_DEFAULT = Path(__file__).resolve().parents[2] / "fixtures/nvml/h200.jsonl"
_state = SimpleNamespace(began=0.0, facts={}, samples=[], start_s=0.0)


def _knob(name: str, default: str = "") -> str:
    return os.environ.get(f"FAKENVML_{name}", default)


def _rules(name: str, call: str, gpu: int | None) -> list[str]:
    """What the knob says of this call now: the texts after `=`, or empty ones."""
    out = []
    for rule in filter(None, _knob(name).split(",")):
        rule, _, after_s = rule.partition("#")
        rule, _, only = rule.partition("@")
        named, _, value = rule.partition("=")
        due = not after_s or (_state.began and time.monotonic() - _state.began >= float(after_s))
        if named == call and due and (not only or int(only) == gpu):
            out.append(value)
    return out


def _cost(call: str, gpu: int | None = None) -> None:
    time.sleep(float(_knob("CALL_MS", "0")) / 1e3)
    while _rules("HANG", call, gpu):
        time.sleep(3600)
    for code in _rules("ERRORS", call, gpu):
        raise NVMLError(int(code))
    if call in _knob("UNSUPPORTED").split(","):
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)


def nvmlInit() -> None:
    _cost("nvmlInit")
    lines = Path(_knob("RECORDING") or _DEFAULT).read_text().splitlines()
    _state.facts = json.loads(lines[0])
    _state.samples = [json.loads(line) for line in lines[1:]]
    _state.start_s = float(_knob("START_S", "0"))
    _state.began = time.monotonic()


def nvmlShutdown() -> None:
    pass


def _sample() -> dict:
    """The recording's sample for now; `energy` counts on when it plays again."""
    samples = _state.samples
    first, last = samples[0], samples[-1]
    step_ns = (last["t"] - first["t"]) // (len(samples) - 1)
    length_ns = last["t"] - first["t"] + step_ns
    at_ns = int((time.monotonic() - _state.began + _state.start_s) * 1e9)
    rounds, at_ns = divmod(at_ns, length_ns)
    now = max((s for s in samples if s["t"] - first["t"] <= at_ns), key=lambda s: s["t"])
    a_round = last["energy"] - first["energy"] + last["power"] * step_ns // 10**9
    return {**now, "energy": now["energy"] + rounds * a_round}


def _value(call: str, device: SimpleNamespace, value: object) -> object:
    _cost(call, device.index)
    if isinstance(value, dict) and "error" in value:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return value


def nvmlSystemGetDriverVersion() -> str:
    return _state.facts["driver"]


def nvmlSystemGetCudaDriverVersion_v2() -> int:
    return _state.facts["cuda"]


def nvmlDeviceGetCount() -> int:
    return int(_knob("GPUS", "1"))


def nvmlDeviceGetHandleByIndex(index: int) -> SimpleNamespace:
    _cost("nvmlDeviceGetHandleByIndex", index)
    return SimpleNamespace(index=index)


def _fact(call: str, key: str):
    def get(device: SimpleNamespace) -> object:
        return _value(call, device, _state.facts[key])

    get.__name__ = call
    return get


def _now(call: str, key: str):
    def get(device: SimpleNamespace) -> object:
        return _value(call, device, _sample()[key])

    get.__name__ = call
    return get


nvmlDeviceGetName = _fact("nvmlDeviceGetName", "name")
nvmlDeviceGetCudaComputeCapability = _fact("nvmlDeviceGetCudaComputeCapability", "cc")
nvmlDeviceGetPowerManagementLimit = _fact("nvmlDeviceGetPowerManagementLimit", "power_limit")
nvmlDeviceGetPowerManagementLimitConstraints = _fact(
    "nvmlDeviceGetPowerManagementLimitConstraints", "power_constraints"
)
nvmlDeviceGetMemoryBusWidth = _fact("nvmlDeviceGetMemoryBusWidth", "bus_width")
nvmlDeviceGetNumGpuCores = _fact("nvmlDeviceGetNumGpuCores", "cores")
nvmlDeviceGetEccMode = _fact("nvmlDeviceGetEccMode", "ecc_mode")
nvmlDeviceGetMigMode = _fact("nvmlDeviceGetMigMode", "mig")
nvmlDeviceGetPersistenceMode = _fact("nvmlDeviceGetPersistenceMode", "persistence")
nvmlDeviceGetMaxPcieLinkGeneration = _fact("nvmlDeviceGetMaxPcieLinkGeneration", "pcie_gen_max")
nvmlDeviceGetMaxPcieLinkWidth = _fact("nvmlDeviceGetMaxPcieLinkWidth", "pcie_width_max")
nvmlDeviceGetCurrPcieLinkGeneration = _fact("nvmlDeviceGetCurrPcieLinkGeneration", "pcie_gen")
nvmlDeviceGetCurrPcieLinkWidth = _fact("nvmlDeviceGetCurrPcieLinkWidth", "pcie_width")
nvmlDeviceGetTotalEnergyConsumption = _now("nvmlDeviceGetTotalEnergyConsumption", "energy")
nvmlDeviceGetPowerUsage = _now("nvmlDeviceGetPowerUsage", "power")
nvmlDeviceGetCurrentClocksEventReasons = _now("nvmlDeviceGetCurrentClocksEventReasons", "reasons")
nvmlDeviceGetCurrentClocksThrottleReasons = _now("nvmlDeviceGetCurrentClocksThrottleReasons", "reasons")
nvmlDeviceGetPerformanceState = _now("nvmlDeviceGetPerformanceState", "pstate")
nvmlDeviceGetFanSpeed = _now("nvmlDeviceGetFanSpeed", "fan")


def nvmlDeviceGetUUID(device: SimpleNamespace) -> str:
    uuid = str(_value("nvmlDeviceGetUUID", device, _state.facts["uuid"]))
    return uuid[:-1] + f"{device.index:x}"


nvmlMemory_v2 = 0x2000028


def nvmlDeviceGetMemoryInfo(device: SimpleNamespace, version: int | None = None) -> SimpleNamespace:
    """The second version keeps the driver's share, a fact of the recording, apart from what is used."""
    call = "nvmlDeviceGetMemoryInfo_v2" if version else "nvmlDeviceGetMemoryInfo"
    memory = _value(call, device, _sample()["mem"])
    if version:
        reserved = _state.facts.get("memory_v2", {}).get("reserved", 0)
        memory = {**memory, "reserved": reserved, "used": memory["used"] - reserved}
    return SimpleNamespace(**memory)


def nvmlDeviceGetUtilizationRates(device: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(**_value("nvmlDeviceGetUtilizationRates", device, _sample()["util"]))


def nvmlDeviceGetTemperature(device: SimpleNamespace, sensor: int) -> int:
    return _value("nvmlDeviceGetTemperature", device, _sample()["temp"])


def nvmlDeviceGetTemperatureThreshold(device: SimpleNamespace, threshold: int) -> int:
    return _value("nvmlDeviceGetTemperatureThreshold", device, _state.facts["thresholds"][str(threshold)])


def nvmlDeviceGetClockInfo(device: SimpleNamespace, clock: int) -> int:
    key = {NVML_CLOCK_SM: "sm", NVML_CLOCK_MEM: "memclk"}[clock]
    return _value("nvmlDeviceGetClockInfo", device, _sample()[key])


def nvmlDeviceGetMaxClockInfo(device: SimpleNamespace, clock: int) -> int:
    key = {NVML_CLOCK_SM: "max_sm", NVML_CLOCK_MEM: "max_mem"}[clock]
    return _value("nvmlDeviceGetMaxClockInfo", device, _state.facts[key])


def nvmlDeviceGetPcieThroughput(device: SimpleNamespace, counter: int) -> int:
    key = {NVML_PCIE_UTIL_TX_BYTES: "pcie_tx", NVML_PCIE_UTIL_RX_BYTES: "pcie_rx"}[counter]
    return _value("nvmlDeviceGetPcieThroughput", device, _sample()[key])


def nvmlDeviceGetTotalEccErrors(device: SimpleNamespace, kind: int, counter: int) -> int:
    key = {NVML_MEMORY_ERROR_TYPE_CORRECTED: "ecc_corr", NVML_MEMORY_ERROR_TYPE_UNCORRECTED: "ecc_unc"}[kind]
    return _value("nvmlDeviceGetTotalEccErrors", device, _sample()[key])


def nvmlDeviceGetComputeRunningProcesses(device: SimpleNamespace) -> list[SimpleNamespace]:
    procs = _value("nvmlDeviceGetComputeRunningProcesses", device, _sample()["procs"])
    pids = [int(p) for p in _knob("PIDS").split(",") if p]
    if pids:
        used = procs[0]["used"] if procs else 2**30
        procs = [{"pid": pid, "used": used} for pid in pids]
    return [SimpleNamespace(pid=p["pid"], usedGpuMemory=p["used"]) for p in procs]


def nvmlDeviceGetComputeRunningProcesses_v2(device: SimpleNamespace) -> list[SimpleNamespace]:
    return nvmlDeviceGetComputeRunningProcesses(device)
