"""A sweep on a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.plain import clean, number, plural
from loadgen.sweep.names import RATE, load_words, shown
from loadgen.sweep.plot import plot
from loadgen.sweep.point import MET, NOT_MET
from loadgen.sweep.record import COMPLETE, RUNNING, Sweep

WIDTH = 80
NAME = 24  # characters of an engine's name in a picture's legend
SLO = {MET: "yes", NOT_MET: "no", None: ""}
COLUMNS = ("load", "tok/s", "gain", "TTFT p50", "p95", "TPOT p50", "p95", "e2e p50", "SLO", "")


def print_sweep(sweep: Sweep, console: Console) -> None:
    """Each engine's table, the curves, and what was found."""
    said = "running, or killed" if sweep.state == RUNNING else clean(sweep.state, 20)
    state = "" if sweep.state == COMPLETE else f" · {said}"
    console.print(Text(f"sweep of {clean(sweep.workload)} · {clean(sweep.name)}{state}", style="bold"))
    if not sweep.steps:
        console.print(Text("no step was made"))
        return
    for name in sweep.engines:
        console.print(_table(sweep, name))
    for line in pictures(sweep, min(console.width, WIDTH)):
        console.print(Text(line), no_wrap=True, overflow="crop")
    if sweep.simulated:
        names = ", ".join(clean(n) for n in sweep.simulated)
        warning = f"simulated engines ({names}): this says nothing about real servers"
        console.print(Text(warning, style="bold yellow"))
    for name in sweep.engines:
        for sentence in sweep.sentences(name):
            console.print(Text(sentence))
    _print_doubts(sweep, console)


def _table(sweep: Sweep, name: str) -> Table:
    title = f"{clean(name)}{' (simulated)' if name in sweep.simulated else ''} · times in ms"
    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(title, style="bold"),
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    columns = [c for c in COLUMNS if c != "SLO" or sweep.slo]
    for column in columns:
        heading = ("req/s" if sweep.variable == RATE else sweep.variable) if column == "load" else column
        table.add_column(heading, justify="right" if column else "left", no_wrap=bool(column))
    before: float | None = None
    for load, one in sorted(sweep.figures(name).items()):
        cells = row(load, one, before)
        before = one["throughput_tokens_per_s"]
        table.add_row(*(Text(cells[i]) for i, c in enumerate(COLUMNS) if c in columns))
    return table


def row(load: float, one: Mapping[str, Any], before: float | None) -> list[str]:
    """The cells of a step; `before` is the throughput of the load beneath, in tokens/s."""
    rate = one["throughput_tokens_per_s"]
    gain = f"{(rate / before - 1) * 100:+.0f} %" if rate and before else ""
    marks = [] if one["validity"] == "valid" else [one["validity"]]
    if one["failed"]:
        marks.append(f"{one['failed']:,} failed")
    return [
        shown(load),
        number(rate),
        gain,
        number(one["ttft_ms"]["p50"]),
        number(one["ttft_ms"]["p95"]),
        number(one["tpot_ms"]["p50"]),
        number(one["tpot_ms"]["p95"]),
        number(one["e2e_ms"]["p50"]),
        SLO.get(one.get("slo"), "?"),
        ", ".join(marks),
    ]


def pictures(sweep: Sweep, width: int) -> list[str]:
    """Throughput over users, and TTFT over throughput; nothing of an engine with a single step."""
    rising: dict[str, list[tuple[float, float]]] = {}
    waiting: dict[str, list[tuple[float, float]]] = {}
    for name in sweep.engines:
        steps = sorted(sweep.figures(name).items())
        rising[clean(name, NAME)] = [
            (float(n), rate) for n, f in steps if (rate := f["throughput_tokens_per_s"])
        ]
        waiting[clean(name, NAME)] = [
            (rate, ttft)
            for _, f in steps
            if (rate := f["throughput_tokens_per_s"]) and (ttft := f["ttft_ms"]["p95"])
        ]
    x_title = "requests a second" if sweep.variable == RATE else sweep.variable
    if max((len(curve) for curve in rising.values()), default=0) < 2:
        return []
    return [
        *plot(rising, x_title=x_title, y_title="throughput, tok/s", width=width, log_x=True),
        "",
        *plot(waiting, x_title="throughput, tok/s", y_title="TTFT p95, ms", width=width, log_y=True),
        "",
    ]


def _print_doubts(sweep: Sweep, console: Console) -> None:
    """What speaks against steps: each check once, with its loads, and what it saw at the highest of them."""
    found: dict[tuple[str, str, str], dict[float, str]] = {}
    for name in sweep.engines:
        for load, one in sorted(sweep.figures(name).items()):
            for finding in one["findings"]:
                key = name, finding["check"], finding["level"]
                found.setdefault(key, {})[load] = finding["evidence"]
    if not found:
        return
    console.print()
    bullets = Table.grid(padding=(0, 1, 0, 0))
    for (name, check, level), loads in found.items():
        *others, last = loads
        at = ", ".join([*map(shown, others), load_words(last, sweep.variable)])
        text = f"{clean(name)}, {at}: {clean(level)} ({clean(check)}): {clean(loads[max(loads)], 200)}"
        bullets.add_row(Text("-"), Text(text))
    console.print(bullets)


def step_lines(load: float, figures: Mapping[str, Mapping[str, Any]], variable: str) -> list[str]:
    """What a step has shown, a line an engine, for people who watch."""
    out = []
    for name, one in figures.items():
        parts = [
            f"{number(one['throughput_tokens_per_s'])} tok/s",
            f"TTFT p95 {number(one['ttft_ms']['p95'])} ms",
        ]
        if one.get("slo"):
            parts.append(f"SLO {one['slo']}")
        if one["failed"]:
            parts.append(f"{plural(one['failed'], 'request')} failed")
        if one["validity"] != "valid":
            parts.append(one["validity"])
        with_load = f"{'at' if variable == RATE else 'with'} {load_words(load, variable)}"
        out.append(f"  {clean(name)} {with_load}: {', '.join(parts)}")
    return out


def duration(seconds: float) -> str:
    """`40 s`, `12 min`, `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
