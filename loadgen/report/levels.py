"""Figures by number of users, on a terminal, and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from loadgen.report.plain import clean, number

SLO = {"met": "met", "not met": "NOT met"}
HEADINGS = ("users", "for", "requests", "TTFT p50", "p95", "TPOT p50", "tok/s", "in flight")


def users_text(level: Mapping[str, Any]) -> str:
    """`8`, or `5 to 8`."""
    low, high = level["users_min"], level["users_max"]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def level_table(name: str, figures: Mapping[str, Any]) -> Table:
    """One engine's levels, fewest users first; the knee is marked. Times in ms."""
    title = Text(f"{clean(name, 40)} by users", style="bold")
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0)
    )
    failures = any(level["failed"] for level in figures["levels"])
    judged = any("slo" in level for level in figures["levels"])
    more = (*(("failed",) if failures else ()), *(("SLO",) if judged else ()))
    for heading in (*HEADINGS, *more):
        table.add_column(heading, justify="right")
    knee = figures.get("knee", {}).get("users")
    for level in figures["levels"]:
        ttft, tpot = level["ttft_ms"], level["tpot_ms"]
        cells = (
            users_text(level) + (" *" if round(level["users"]) == knee else ""),
            f"{number(level['seconds'])} s",
            f"{level['requests']:,}",
            _of(ttft, "p50"),
            _of(ttft, "p95"),
            _of(tpot, "p50"),
            number(level["throughput_tokens_per_s"]),
            number(level["concurrency"]),
            *((f"{level['failed']:,}",) if failures else ()),
            *((SLO.get(level.get("slo"), "?"),) if judged else ()),
        )
        table.add_row(*map(Text, cells))
    return table


def knee_text(figures: Mapping[str, Any]) -> str | None:
    """What the curve of throughput over users shows; None where there is no curve."""
    levels = figures.get("levels") or []
    if len(levels) < 3:
        return None
    knee = figures.get("knee")
    if knee is None:
        return (
            f"no knee was seen up to {users_text(levels[-1])} users: that takes two levels beyond it, twice "
            "its users, with less than 5 % more throughput"
        )
    return (
        f"the knee (*) is at {knee['users']:,} users: more of them bring less than 5 % more throughput than "
        f"its {number(knee['throughput_tokens_per_s'])} tokens/s"
    )


def slo_text(figures: Mapping[str, Any]) -> str | None:
    """Up to how many users the run's SLO was kept; None without one."""
    found = figures.get("within_slo")
    if not found:
        return None
    slo, users, broken = clean(found["slo"], 120), found["users"], found["broken"]
    if users is None and broken is None:
        return f"SLO {slo}: not decidable at any number of users, levels of more requests may tell"
    kept = f"kept up to {users:,} users" if users is not None else "kept at no number of users"
    return f"SLO {slo}: {kept}" + (f", not kept at {broken:,}" if broken is not None else "")


def _of(stats: Mapping[str, Any], part: str) -> str:
    return number(stats[part]) if stats["n"] else "-"
