"""Rows that came over the network: what is no row of gpu.jsonl gets no further. Pure.

An agent may be of another version, or no agent at all; whoever reads rows may rely on their form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadgen.telemetry.rows import DCGM_FIELDS, FACTS, NOTE, SAMPLE, SAMPLE_FIELDS, existing

LONGEST_TEXT = 1000
MOST_ITEMS = 1000
MOST_GPUS = 10**5
LATEST_NS = 2**62  # the year 2116

_UNITS = ("_percent", "_bytes", "_per_s", "_w", "_j", "_c", "_mhz", "_ms", "_mask")
_LISTS = ("throttle_reasons", "unsupported")
_TEXTS = ("name", "uuid", "driver", "cuda", "mig_instance", "engine")


def foreign_row(row: Any) -> dict[str, Any] | None:
    """The row without fields of a wrong type; None where it is no row at all."""
    if type(row) is not dict or not _has_head(row):
        return None
    return existing({k: v for k, v in row.items() if _fits(k, v)})


def _has_head(row: dict[str, Any]) -> bool:
    kind, gpu = row.get("kind"), row.get("gpu")
    is_gpu = type(gpu) is int and 0 <= gpu < MOST_GPUS
    if type(row.get("t_ns")) is not int or not 0 < row["t_ns"] < LATEST_NS or not _is_text(row.get("host")):
        return False
    if kind == NOTE:
        return _is_text(row.get("text")) and (gpu is None or is_gpu)
    return kind in (FACTS, SAMPLE) and is_gpu and _is_text(row.get("source"))


def _fits(name: str, value: Any) -> bool:
    if name == "processes":
        return _is_list(value, _is_process)
    if name in _LISTS:
        return _is_list(value, _is_text)
    if name in _TEXTS:
        return _is_text(value)
    if name in SAMPLE_FIELDS or name in DCGM_FIELDS or name.endswith(_UNITS):
        return _is_number(value)
    return len(name) <= LONGEST_TEXT and (_is_number(value) or _is_text(value) or type(value) is bool)


def _is_process(value: Any) -> bool:
    if type(value) is not dict or type(value.get("pid")) is not int:
        return False
    return all(
        _is_text(v) if k in _TEXTS else type(v) is int and abs(v) < LATEST_NS for k, v in value.items()
    )


def _is_list(value: Any, item: Callable[[Any], bool]) -> bool:
    return type(value) is list and len(value) <= MOST_ITEMS and all(map(item, value))


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_text(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= LONGEST_TEXT
