"""The rows of gpu.jsonl: facts (one a GPU, at the start), samples, notes. Pure.

Units are in the names: `_percent` 0..100, `_w` watts, `_j` joules since the driver was loaded, `_c` degrees
Celsius, `_mhz`, `_bytes`, `_bytes_per_s`, `_ms`; `t_ns` is wall time. A value that does not exist is absent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

FACTS = "facts"
SAMPLE = "sample"
NOTE = "note"

LARGEST_INT = 2**63 - 1

NVML = "nvml"
DCGM = "dcgm"

# What a sample may hold; `facts` name those of them that a card or driver does not give.
SAMPLE_FIELDS: tuple[str, ...] = (
    "utilization_percent",
    "memory_busy_percent",
    "memory_used_bytes",
    "memory_total_bytes",
    "temperature_c",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "power_w",
    "energy_j",
    "throttle_mask",
    "throttle_reasons",
    "ecc_corrected",
    "ecc_uncorrected",
    "pcie_generation",
    "pcie_width",
    "pcie_tx_bytes_per_s",
    "pcie_rx_bytes_per_s",
    "pstate",
    "fan_percent",
    "processes",
)
# Only from dcgm-exporter.
DCGM_FIELDS: tuple[str, ...] = (
    "dram_active",
    "tensor_active",
    "sm_active",
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
    "xid",
)


def facts_row(
    t_ns: int,
    host: str,
    gpu: int,
    values: Mapping[str, Any],
    *,
    source: str,
    unsupported: Iterable[str] = (),
) -> dict[str, Any]:
    """What does not change while a run lasts. `unsupported`: sample fields that will be absent."""
    head = {"kind": FACTS, "t_ns": t_ns, "host": host, "gpu": gpu, "source": source}
    return {**head, **existing(values), "unsupported": sorted(set(unsupported))}


def sample_row(
    t_ns: int,
    host: str,
    gpu: int,
    values: Mapping[str, Any],
    *,
    source: str,
    cost_ms: float | None = None,
) -> dict[str, Any]:
    """One look at one GPU. `t_ns` is when it began; `cost_ms` is how long it took."""
    head = {"kind": SAMPLE, "t_ns": t_ns, "host": host, "gpu": gpu, "source": source}
    cost = {} if cost_ms is None else {"cost_ms": round(cost_ms, 3)}
    return {**head, **existing(values), **cost}


def note_row(t_ns: int, host: str, text: str, gpu: int | None = None) -> dict[str, Any]:
    """A sentence for people: what is missing, what went wrong, and from when on."""
    about = {} if gpu is None else {"gpu": gpu}
    return {"kind": NOTE, "t_ns": t_ns, "host": host, **about, "text": text}


def existing(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that are None, no finite number, or an integer of more than 64 bits."""
    return {k: v for k, v in values.items() if v is not None and not _is_no_number(v)}


def _is_no_number(value: Any) -> bool:
    if isinstance(value, int):
        return not -LARGEST_INT <= value <= LARGEST_INT
    return isinstance(value, float) and not math.isfinite(value)
