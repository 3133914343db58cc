"""Answers on a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.plain import clean
from loadgen.slo.check import CheckedRun
from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET
from loadgen.validity import Level

STYLES = {MET: "bold green", NOT_MET: "bold red", NOT_DECIDABLE: "bold yellow"}


def print_checked(runs: Sequence[CheckedRun], answer: str, console: Console) -> None:
    for run in runs:
        console.print(Text(f"{clean(run.scenario)} · {clean(run.name)}", style="bold"))
        for name, judgements in run.engines.items():
            simulated = " (simulated: this says nothing about real servers)" if name in run.simulated else ""
            console.print(Text(f"  {clean(name)}{simulated}"))
            table = Table.grid(padding=(0, 2, 0, 0))
            for j in judgements:
                table.add_row(
                    Text("   "),
                    Text(j.answer, style=STYLES[j.answer], no_wrap=True),
                    Text(j.objective.text, no_wrap=True),
                    Text(clean(j.sentence, 300)),
                )
            console.print(table)
        if run.cut:
            indented = Table.grid(padding=(0, 1, 0, 0))
            indented.add_row(Text(" "), Text(clean(run.cut, 600)))
            console.print(indented)
        _print_validity(run, console)
    console.print(Text(f"result: {answer}", style=STYLES[answer]))


def _print_validity(run: CheckedRun, console: Console) -> None:
    findings = [f for f in run.validity.findings if f.level > Level.VALID]
    if not findings and run.believed:
        return
    consequence = "" if run.believed else ", so it decides nothing"
    console.print(Text(f"  the run is {run.validity.level.word}{consequence}"))
    reasons = Table.grid(padding=(0, 1, 0, 0))
    for finding in findings:
        reasons.add_row(Text("   -"), Text(f"{finding.level.word}: {clean(finding.sentence(), 400)}"))
    console.print(reasons)
