"""A comparison on a terminal: 80 columns, readable without colour. Every text passes `clean` first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.compare.assess import Assessment
from loadgen.compare.outcome import Outcome, factor
from loadgen.compare.result import Row, RunComparison
from loadgen.report.comparison import cells
from loadgen.report.plain import clean
from loadgen.report.terminal import SHOWN_NOTES

LONGEST = 600


def print_assessment(assessment: Assessment, console: Console, *, everything: bool = False) -> None:
    """Print every comparison, then what follows from all of them."""
    for n, comparison in enumerate(assessment.comparisons):
        if n:
            console.print()
        own = [o for o in assessment.outcomes if o.scenario == comparison.scenario]
        _print_comparison(comparison, own, console, everything)
    if len(assessment.comparisons) > 1:
        for found in assessment.overall:
            console.print()
            console.print(Text(f"over all: {_against(found.engine, found.baseline)}", style="bold"))
            console.print(Text(clean(found.sentence, LONGEST)))
    if assessment.advice:
        console.print()
        console.print(Text("what this says for use", style="bold"))
        _bullets(console, (clean(a.sentence, LONGEST) for a in assessment.advice))


def _print_comparison(
    comparison: RunComparison, outcomes: Sequence[Outcome], console: Console, everything: bool
) -> None:
    if len(comparison.runs) == 1:
        console.print(Text(f"{clean(comparison.scenario)} · {clean(comparison.runs[0])}", style="bold"))
    else:
        for mark, run in zip("AB", comparison.runs, strict=False):
            console.print(Text(f"{mark}: {clean(run)}", style="bold"))
    _print_differences(comparison, console)
    for line in cells.made_of(comparison):
        console.print(Text(line, style="dim"))
    _print_validity(comparison, console)
    if not comparison.rows:
        console.print(Text("nothing to compare: one engine, and one run"))
        return
    for outcome in outcomes:
        console.print()
        console.print(Text(f"verdict: {clean(outcome.said, LONGEST)}", style="bold"))
    rows = cells.shown(comparison, everything=everything)
    for (engine, baseline), own in cells.pairs(rows).items():
        console.print()
        console.print(_table(engine, baseline, own))
    for line in cells.basis(comparison, rows):
        console.print(Text(line, style="bold yellow" if line.startswith("simulated") else "dim"))
    _print_memory(comparison, console)
    if comparison.cannot_exclude:
        console.print()
        _bullets(console, (clean(text, LONGEST) for text in comparison.cannot_exclude))


def _print_differences(comparison: RunComparison, console: Console) -> None:
    matter, rest = cells.difference_cells(comparison)
    if matter:
        table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
        for heading, width in (("differs, and matters", 28), ("A", 25), ("B", 25)):
            table.add_column(Text(heading, style="bold"), width=width, overflow="fold")
        for row in matter:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    elif len(comparison.runs) > 1:
        matters = "that matters" if rest else "that is recorded"
        console.print(Text(f"the runs differ in nothing {matters}"))
    if rest:
        console.print(Text(f"differs, matters less: {', '.join(rest)}", style="dim"))


def _print_validity(comparison: RunComparison, console: Console) -> None:
    level = comparison.validity.level
    console.print(Text(f"validity: {level.word}", style=("bold green", "bold yellow", "bold red")[level]))
    _bullets(
        console,
        (
            f"{finding.level.word if finding.level else 'note'}: {clean(finding.sentence(), 400)}"
            for finding in comparison.validity.findings
            if finding.level or finding.check in SHOWN_NOTES
        ),
    )


def _table(engine: str, baseline: str, rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    columns = (
        ("", 22, "left"),
        (clean(engine, 27), 9, "right"),
        (clean(baseline, 27), 9, "right"),
        ("ratio", 6, "right"),
        ("interval", 15, "right"),
        ("better", 13, "left"),
    )
    for heading, width, side in columns:
        table.add_column(
            Text(heading, style="bold"),
            width=width,
            overflow="fold",
            justify="left" if side == "left" else "right",
        )
    before = None
    for row in rows:
        title, statistic, unit = cells.name(row)
        first = "" if (title, unit) == before else title
        before = (title, unit)
        label = f"{first:<11} {statistic:<4} {unit:>5}" if len(title) <= 11 else f"{title} {statistic} {unit}"
        mine, theirs = cells.values(row)
        table.add_row(
            Text(label),
            Text(mine),
            Text(theirs),
            Text(factor(row.ratio)),
            Text(cells.interval(row)),
            Text(clean(cells.answer(row), 26)),
            style="bold" if row.headline else "",
        )
    return table


def _print_memory(comparison: RunComparison, console: Console) -> None:
    rows = list(cells.memory_cells(comparison))
    if not rows:
        return
    console.print()
    fit = max(1, (console.width - 22) // 25)
    for start in range(0, len(comparison.engines), fit):
        table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
        table.add_column("", width=22, overflow="fold")
        for engine in comparison.engines[start : start + fit]:
            table.add_column(
                Text(clean(engine, 48), style="bold"), width=24, overflow="fold", justify="right"
            )
        for label, all_cells in rows:
            table.add_row(Text(label), *(Text(cell) for cell in all_cells[start : start + fit]))
        console.print(table)
    for line in cells.sources(comparison):
        console.print(Text(line, style="dim"))
    for line in cells.against_baseline(comparison):
        console.print(Text(line))


def _against(engine: str, baseline: str) -> str:
    return f"{clean(engine)} / {clean(baseline)}"


def _bullets(console: Console, texts: Iterable[str]) -> None:
    table = Table.grid(padding=(0, 1, 0, 0))
    for text in texts:
        table.add_row(Text("-"), Text(text))
    if table.row_count:
        console.print(table)
