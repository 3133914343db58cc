"""GPU rows as tables for a terminal of 80 columns. Pure: rows in, rich renderables out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.plain import clean, number

GIB = 2**30
NOTES = 5
Row = Mapping[str, Any]
NAME = 16
# Heading and width; the last column has the rest.
_COLUMNS = (("busy", 5), ("mem", 5), ("memory GiB", 11), ("C", 3), ("power W", 7), ("MHz", 5))


def live(latest: Sequence[Row], facts: Sequence[Row], notes: Sequence[str], heading: str) -> RenderableType:
    """The newest sample of each GPU, its processes below it, and the last notes."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("GPU", width=NAME, no_wrap=True)
    for heading_of, width in _COLUMNS:
        table.add_column(heading_of, width=width, justify="right", no_wrap=True)
    table.add_column("held back by")
    hosts = {row["host"] for row in latest}
    of = {key(f): f for f in facts}
    for row in latest:
        fact = of.get(key(row), {})
        table.add_row(*(Text(cell) for cell in _cells(row, fact, with_host=len(hosts) > 1)))
        for process in row.get("processes", ()):
            table.add_row(
                Text(f"  {_process(process)}", style="dim"), "", "", _gib(process.get("memory_bytes"))
            )
    lines = [Text(f"- {clean(note, 300)}", style="yellow") for note in notes[-NOTES:]]
    if not latest:
        lines.append(Text("no sample yet"))
    return Group(Text(heading, style="bold"), table, *lines)


def plain_line(row: Row) -> str:
    """One GPU's newest sample in a line, for a log."""
    parts = [
        f"{clean(row['host'])} GPU {_name(row)}:",
        f"busy {_share(row, 'utilization_percent')}",
        f"memory {_gib(row.get('memory_used_bytes'))} GiB",
        f"{_value(row, 'temperature_c')} C",
        f"{_value(row, 'power_w')} W",
        f"SM {_value(row, 'sm_clock_mhz')} MHz",
        _reasons(row),
    ]
    return " ".join(parts).rstrip()


def facts_line(fact: Row) -> str:
    """`GPU 0: NVIDIA H200, 140.4 GiB, driver 580.159.04, CUDA 13.0, limit 700 W`"""
    memory = f"{_gib(fact['memory_total_bytes'])} GiB" if "memory_total_bytes" in fact else ""
    limit = f"limit {number(fact['power_limit_w'])} W" if "power_limit_w" in fact else ""
    named = [
        f"{word} {fact[name]}" for word, name in (("driver", "driver"), ("CUDA", "cuda")) if name in fact
    ]
    parts = [str(fact.get("name", "")), memory, *named, limit]
    return clean(f"GPU {_name(fact)}: " + ", ".join(p for p in parts if p), 200)


def key(row: Row) -> tuple[Any, ...]:
    return row["host"], row["gpu"], row.get("mig_instance"), row["source"]


def _cells(row: Row, fact: Row, *, with_host: bool) -> list[str]:
    gpu = _name(row)
    name = f"{clean(row['host'], NAME - 1 - len(gpu))} {gpu}" if with_host else gpu
    total = row.get("memory_total_bytes") or fact.get("memory_total_bytes")
    return [
        name,
        _share(row, "utilization_percent"),
        _share(row, "memory_busy_percent"),
        _of(_gib(row.get("memory_used_bytes")), _gib(total)),
        _value(row, "temperature_c"),
        _of(_value(row, "power_w"), _value(fact, "power_limit_w")),
        _value(row, "sm_clock_mhz"),
        _reasons(row),
    ]


def _name(row: Row) -> str:
    return f"{row['gpu']} {clean(row['mig_instance'], 12)}" if row.get("mig_instance") else str(row["gpu"])


def _process(process: Row) -> str:
    return clean(process.get("engine") or process.get("name") or f"pid {process['pid']}", 14)


def _reasons(row: Row) -> str:
    """`idle` is no reason for concern, and no reason at all an empty cell."""
    names: Iterable[str] = row.get("throttle_reasons", ())
    return clean(", ".join("idle" if n == "gpu_idle" else n.replace("_", " ") for n in names), 40)


def _share(row: Row, field: str) -> str:
    return f"{row[field]:.0f} %" if field in row else "-"


def _value(row: Row, field: str) -> str:
    return f"{row[field]:.0f}" if field in row else "-"


def _gib(count: int | None) -> str:
    return "-" if count is None else f"{count / GIB:.1f}"


def _of(part: str, whole: str) -> str:
    return part if whole == "-" else f"{part}/{whole}"
