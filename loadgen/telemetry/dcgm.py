"""What dcgm-exporter's /metrics says of GPUs, as rows of gpu.jsonl. Pure.

Fields and units as in dcgm_fields.h and the exporter's own lists (etc/dcp-metrics-included.csv): power in
watts, energy in millijoules since the driver was loaded, memory in MiB, PROF_*_BYTES in bytes per second,
PROF_*_ACTIVE as shares of the time. Which of them an exporter has is decided by its list.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from loadgen.engines.metricstext import samples
from loadgen.telemetry.reasons import decode
from loadgen.telemetry.rows import DCGM, DCGM_FIELDS, SAMPLE_FIELDS, existing, facts_row, sample_row

MIB = 2**20
# DCGM's values for "there is none" (dcgm_structs.h): near 2^63, and 2^47 for floats; which of them says why.
_BLANKS = ((0x7FFFFFFFFFFFFF00, math.inf), (140737488355328.0, 140737488355343.0))
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')

Convert = Callable[[float], Any]


# Names that DCGM has changed are listed with their successors.
_SAMPLE: dict[str, tuple[str, Convert]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization_percent", float),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_busy_percent", float),
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", lambda v: _bytes(v)),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", float),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", float),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_mhz", float),
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", float),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_j", lambda v: v / 1000),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_mask", int),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle_mask", int),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", int),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", int),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("pcie_generation", int),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("pcie_width", int),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx_bytes_per_s", float),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx_bytes_per_s", float),
    "DCGM_FI_DEV_PSTATE": ("pstate", int),
    "DCGM_FI_DEV_FAN_SPEED": ("fan_percent", float),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active", float),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active", float),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", float),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_tx_bytes_per_s", float),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": ("nvlink_rx_bytes_per_s", float),
    "DCGM_FI_DEV_XID_ERRORS": ("xid", int),
}
_FACTS: dict[str, tuple[str, Convert]] = {
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", float),
    "DCGM_FI_DEV_MAX_SM_CLOCK": ("max_sm_clock_mhz", float),
    "DCGM_FI_DEV_MAX_MEM_CLOCK": ("max_memory_clock_mhz", float),
    "DCGM_FI_DEV_SLOWDOWN_TEMP": ("temperature_slowdown_c", float),
    "DCGM_FI_DEV_SHUTDOWN_TEMP": ("temperature_shutdown_c", float),
    "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": ("pcie_generation_max", int),
    "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": ("pcie_width_max", int),
    "DCGM_FI_DEV_ECC_CURRENT": ("ecc_enabled", bool),
    "DCGM_FI_DEV_MIG_MODE": ("mig_enabled", bool),
}
_FRAME_BUFFER = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED")

Key = tuple[str, int, str]  # host, GPU, MIG instance or ""


class _Seen:
    """One GPU or MIG instance in a scrape: DCGM's values by name, and the labels of its lines."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.labels: dict[str, str] = {}


def parse(text: str, t_ns: int, host: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(facts, samples) of one scrape, one of each a GPU or MIG instance.

    `host` is used for lines without a Hostname label. Where the card is split by MIG, each instance has rows
    of its own with `mig_instance` ("1g.10gb/7": profile and instance); what belongs to the card as a whole
    (power, energy, temperature) is then the card's in each of them.
    """
    facts, found = [], []
    for (where, gpu, instance), seen in sorted(_group(text, host).items()):
        mig = {"mig_instance": instance} if instance else {}
        values = _convert(_SAMPLE, seen.values)
        if (mask := values.get("throttle_mask")) is not None:
            values["throttle_reasons"] = decode(mask)
        total = _memory_total(seen.values)
        memory = {} if total is None else {"memory_total_bytes": total}
        found.append(sample_row(t_ns, where, gpu, {**values, **memory, **mig}, source=DCGM))
        known = {
            "uuid": seen.labels.get("UUID") or seen.labels.get("uuid"),
            "name": seen.labels.get("modelName"),
            "driver": seen.labels.get("DCGM_FI_DRIVER_VERSION"),
            **memory,
            **_convert(_FACTS, seen.values),
            **({"mig_enabled": True} if instance else {}),
        }
        has = {*values, *memory}
        missing = [f for f in (*SAMPLE_FIELDS, *DCGM_FIELDS) if f not in has]
        facts.append(facts_row(t_ns, where, gpu, {**known, **mig}, source=DCGM, unsupported=missing))
    return facts, found


def _group(text: str, host: str) -> dict[Key, _Seen]:
    seen: dict[Key, _Seen] = {}
    for name, written, value in samples(text):
        if not name.startswith("DCGM_FI_") or _is_blank(value):
            continue
        labels = dict(_LABEL.findall(written))
        gpu = labels.get("gpu", "")
        if not (gpu.isascii() and gpu.isdigit() and len(gpu) < 6):
            continue  # NVSwitches, CPUs
        instance = labels.get("GPU_I_ID", "")
        profile = labels.get("GPU_I_PROFILE", "")
        key = (
            labels.get("Hostname") or labels.get("hostname") or host,
            int(gpu),
            f"{profile or 'mig'}/{instance}" if instance else "",
        )
        one = seen.setdefault(key, _Seen())
        # A GPU that several pods share has a line for each of them, all with the same value.
        one.values.setdefault(name, value)
        one.labels.update(labels)
    return seen


def _is_blank(value: float) -> bool:
    return not math.isfinite(value) or any(low <= value <= high for low, high in _BLANKS)


def _convert(table: Mapping[str, tuple[str, Convert]], values: Mapping[str, float]) -> dict[str, Any]:
    out = {}
    for name, (field, convert) in table.items():
        if name in values:
            with contextlib.suppress(OverflowError):
                out[field] = convert(values[name])
    return existing(out)


def _bytes(mib: float) -> int | None:
    """None for a figure that no memory has."""
    return int(mib * MIB) if abs(mib) < 2**40 else None


def _memory_total(values: Mapping[str, float]) -> int | None:
    if (total := values.get("DCGM_FI_DEV_FB_TOTAL")) is not None:
        return _bytes(total)
    used, free, reserved = (values.get(name) for name in _FRAME_BUFFER)
    if used is None or free is None:
        return None
    # Exporters before 3.3 do not tell what the driver keeps for itself.
    return _bytes(used + free + (reserved or 0.0))
