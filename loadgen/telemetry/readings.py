"""Which NVML call gives which field, and in what unit: data and pure conversions, no calls.

Units are nvml.h's: power in milliwatts, energy in millijoules since the driver was loaded, PCIe throughput in
KB/s (1,000 bytes) over the last 20 ms, clocks in MHz.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.telemetry.reasons import decode

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """One call. `calls` are its names, the current one first: older drivers know only the later ones.

    `args` are names of pynvml's constants, passed after the device; `first_args` go to the first of the calls
    alone. `fields` are what `convert` may give.
    """

    calls: tuple[str, ...]
    fields: tuple[str, ...]
    convert: Callable[[Any], Values]
    args: tuple[str, ...] = ()
    first_args: tuple[str, ...] = ()


def _one(field: str, call: str, *args: str, milli: bool = False, kilo: bool = False) -> Reading:
    def convert(value: Any) -> Values:
        return {field: value / 1000 if milli else value * 1000 if kilo else value}

    return Reading((call,), (field,), convert, args)


def _flag(field: str, call: str) -> Reading:
    """A mode that is on or off; some calls give [current, after the next restart]."""

    def convert(value: Any) -> Values:
        now = value[0] if isinstance(value, (list, tuple)) else value
        return {field: bool(now)}

    return Reading((call,), (field,), convert)


def _throttle(mask: int) -> Values:
    return {"throttle_mask": int(mask), "throttle_reasons": decode(int(mask))}


def processes(found: Any) -> list[dict[str, Any]]:
    """NVML gives no memory (None) where it may not tell, and the driver's all-ones for the same reason."""
    rows = []
    for process in found:
        row: dict[str, Any] = {"pid": int(process.pid)}
        used = process.usedGpuMemory
        if used is not None and 0 <= used < 2**63:
            row["memory_bytes"] = int(used)
        rows.append(row)
    return sorted(rows, key=lambda row: row["pid"])


def cuda_version(number: int) -> str:
    """NVML's 13000 is CUDA 13.0, its 12080 is 12.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


# Energy and power first: `t_ns` of the sample is nearest to them.
FAST: tuple[Reading, ...] = (
    _one("energy_j", "nvmlDeviceGetTotalEnergyConsumption", milli=True),
    _one("power_w", "nvmlDeviceGetPowerUsage", milli=True),
    Reading(
        ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        ("throttle_mask", "throttle_reasons"),
        _throttle,
    ),
    _one("sm_clock_mhz", "nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
    _one("memory_clock_mhz", "nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"),
    Reading(
        ("nvmlDeviceGetUtilizationRates",),
        ("utilization_percent", "memory_busy_percent"),
        lambda u: {"utilization_percent": u.gpu, "memory_busy_percent": u.memory},
    ),
    _one("temperature_c", "nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
    # Its second version keeps the driver's own share apart, as nvidia-smi and dcgm do: 0.6 GiB of an H200.
    Reading(
        ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo"),
        ("memory_used_bytes", "memory_total_bytes"),
        lambda m: {"memory_used_bytes": m.used, "memory_total_bytes": m.total},
        first_args=("nvmlMemory_v2",),
    ),
    Reading(("nvmlDeviceGetPerformanceState",), ("pstate",), lambda p: {"pstate": p if p < 32 else None}),
    Reading(
        ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2"),
        ("processes",),
        lambda found: {"processes": processes(found)},
    ),
)

# The PCIe throughput calls measure for 20 ms each; the others change seldom.
SLOW: tuple[Reading, ...] = (
    _one("pcie_tx_bytes_per_s", "nvmlDeviceGetPcieThroughput", "NVML_PCIE_UTIL_TX_BYTES", kilo=True),
    _one("pcie_rx_bytes_per_s", "nvmlDeviceGetPcieThroughput", "NVML_PCIE_UTIL_RX_BYTES", kilo=True),
    _one("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    _one("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
    _one(
        "ecc_corrected",
        "nvmlDeviceGetTotalEccErrors",
        "NVML_MEMORY_ERROR_TYPE_CORRECTED",
        "NVML_VOLATILE_ECC",
    ),
    _one(
        "ecc_uncorrected",
        "nvmlDeviceGetTotalEccErrors",
        "NVML_MEMORY_ERROR_TYPE_UNCORRECTED",
        "NVML_VOLATILE_ECC",
    ),
    _one("fan_percent", "nvmlDeviceGetFanSpeed"),
)

STATIC: tuple[Reading, ...] = (
    _one("uuid", "nvmlDeviceGetUUID"),
    _one("name", "nvmlDeviceGetName"),
    Reading(
        ("nvmlDeviceGetCudaComputeCapability",),
        ("compute_capability",),
        lambda cc: {"compute_capability": f"{cc[0]}.{cc[1]}"},
    ),
    Reading(
        ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo"),
        ("memory_total_bytes", "memory_reserved_bytes"),
        lambda m: {
            "memory_total_bytes": m.total,
            **({"memory_reserved_bytes": m.reserved} if hasattr(m, "reserved") else {}),
        },
        first_args=("nvmlMemory_v2",),
    ),
    _one("power_limit_w", "nvmlDeviceGetPowerManagementLimit", milli=True),
    Reading(
        ("nvmlDeviceGetPowerManagementLimitConstraints",),
        ("power_limit_min_w", "power_limit_max_w"),
        lambda c: {"power_limit_min_w": c[0] / 1000, "power_limit_max_w": c[1] / 1000},
    ),
    _one("max_sm_clock_mhz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
    _one("max_memory_clock_mhz", "nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
    _one("memory_bus_bits", "nvmlDeviceGetMemoryBusWidth"),
    _one("cores", "nvmlDeviceGetNumGpuCores"),
    _flag("ecc_enabled", "nvmlDeviceGetEccMode"),
    _flag("mig_enabled", "nvmlDeviceGetMigMode"),
    _flag("persistence_mode", "nvmlDeviceGetPersistenceMode"),
    _one("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    _one("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
    _one(
        "temperature_slowdown_c",
        "nvmlDeviceGetTemperatureThreshold",
        "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN",
    ),
    _one(
        "temperature_shutdown_c",
        "nvmlDeviceGetTemperatureThreshold",
        "NVML_TEMPERATURE_THRESHOLD_SHUTDOWN",
    ),
    _one(
        "temperature_max_c",
        "nvmlDeviceGetTemperatureThreshold",
        "NVML_TEMPERATURE_THRESHOLD_GPU_MAX",
    ),
)
