"""Runs as a list: 80 columns for people, rows for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from loadgen.plain import clean, number
from loadgen.report.overview import overview
from loadgen.screen import Console
from loadgen.store.inventory import Entry, Listed
from loadgen.store.manifest import RUNNING

NAME = 44
ENGINE = 26
CELL = 9
# Heading, metric, statistic.
HEADLINES = (
    ("TTFT p50", "ttft_ms", "p50"),
    ("p95 ms", "ttft_ms", "p95"),
    ("TPOT ms", "tpot_ms", "p50"),
    ("tok/s", "window", "throughput_tokens_per_s"),
)
STYLES = {"valid": "green", "suspect": "yellow", "void": "red"}


def to_rows(entry: Entry) -> Iterator[dict[str, Any]]:
    """One JSON object a run."""
    for run in entry.runs:
        seen = overview(run.run, going_on=run.state == RUNNING)
        models = {str(e.get("name")): e for e in run.engines}
        yield {
            "run": run.name,
            "path": str(run.run.path),
            "suite": run.suite,
            "scenario": run.scenario,
            "state": run.state,
            "start_ns": run.start_ns,
            "validity": seen.validity,
            "engines": {
                name: {
                    "model": models.get(name, {}).get("model"),
                    "simulated": models.get(name, {}).get("simulated") is True,
                    **_figures(seen.engines.get(name, {})),
                }
                for name in dict.fromkeys([*models, *seen.engines])
            },
        }


def print_entries(entries: Iterable[Entry]) -> None:
    console = Console(soft_wrap=True)
    cells = "".join(f"{heading:>{CELL}}" for heading, _, _ in HEADLINES)
    console.print(Text(f"{'run':{NAME}} {'state':12} validity", style="bold"))
    console.print(Text(f"{'    engine':{ENGINE}}{cells}{'failed':>{CELL}}", style="bold"))
    for entry in entries:
        if entry.suite:
            console.print(Text(f"{clean(entry.name):{NAME}} suite of {len(entry.runs)}"))
        for run in entry.runs:
            _print_run(run, console, "  " if entry.suite else "")


def _print_run(run: Listed, console: Console, indent: str) -> None:
    seen = overview(run.run, going_on=run.state == RUNNING)
    line = Text(f"{indent + clean(run.name):{NAME}} {clean(run.state, 12):12} ")
    word = seen.validity or "-"
    line.append(word, style=STYLES.get(word, ""))
    console.print(line)
    simulated = {str(e.get("name")) for e in run.engines if e.get("simulated") is True}
    for name in dict.fromkeys([*(str(e.get("name")) for e in run.engines), *seen.engines]):
        figures = _figures(seen.engines.get(name, {}))
        mark = " (sim)" if name in simulated else ""
        label = clean(name, ENGINE - len(indent) - 5 - len(mark)) + mark
        cells = "".join(f"{number(figures[_key(m, s)]):>{CELL}}" for _, m, s in HEADLINES)
        failed = "-" if figures["failed"] is None else f"{figures['failed']:,}"
        console.print(Text(f"{indent + '    ' + label:{ENGINE}}{cells}{failed:>{CELL}}"))


def _key(metric: str, statistic: str) -> str:
    return statistic if metric == "window" else f"{metric}_{statistic}"


def _figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The headline figures by name, None where there is none."""
    out = {_key(m, s): (figures.get(m) or {}).get(s) for _, m, s in HEADLINES}
    counts = figures.get("counts") or {}
    return {**out, "requests": counts.get("requests"), "failed": counts.get("failed")}


def size(n: int) -> str:
    """Bytes, readable.

    >>> size(0), size(1536), size(3 * 2**30)
    ('0 B', '1.50 KiB', '3.00 GiB')
    """
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{number(value) if unit != 'B' else n} {unit}"
