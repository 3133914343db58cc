"""A comparison in GitHub's Markdown, for pull requests: the answer first, what it rests on folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from loadgen.compare.assess import Assessment
from loadgen.compare.outcome import Outcome, factor
from loadgen.compare.result import Row, RunComparison
from loadgen.report.comparison import cells
from loadgen.report.plain import clean
from loadgen.validity.finding import Level

_MARKUP = re.compile(r"([\\`*_{}\[\]()#+!|<>~@])")
LONGEST = 600


def markdown(assessment: Assessment, *, everything: bool = False) -> str:
    """The whole text, with a final newline. Names and texts from servers are escaped."""
    lines: list[str] = []
    for comparison in assessment.comparisons:
        own = [o for o in assessment.outcomes if o.scenario == comparison.scenario]
        lines += [*_comparison(comparison, own, everything), ""]
    if len(assessment.comparisons) > 1:
        lines += ["### Over all", ""]
        for found in assessment.overall:
            lines.append(f"- **{_md(found.engine)} / {_md(found.baseline)}**: {_md(found.sentence)}")
        lines.append("")
    if assessment.advice:
        lines += ["### What this says for use", "", *(f"- {_md(a.sentence)}" for a in assessment.advice), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _comparison(comparison: RunComparison, outcomes: Sequence[Outcome], everything: bool) -> Iterator[str]:
    runs = [_md(r) for r in comparison.runs]
    yield f"### {_md(comparison.scenario)}"
    yield ""
    yield from _differences(comparison)
    for outcome in outcomes:
        yield f"**{_md(outcome.said)}**"
        yield ""
    if not comparison.rows:
        yield "Nothing to compare: one engine, and one run."
        yield ""
    yield f"Validity: **{comparison.validity.level.word}**"
    yield ""
    reasons = [f for f in comparison.validity.findings if f.level > Level.VALID]
    if reasons:
        yield from (f"- {f.level.word}: {_md(f.sentence())}" for f in reasons)
        yield ""
    rows = cells.shown(comparison, everything=everything)
    for (engine, baseline), own in cells.pairs(rows).items():
        yield from _table(
            ["", _md(engine), _md(baseline), "ratio", "interval", "better"],
            (
                [
                    f"**{_label(row)}**" if row.headline else _label(row),
                    *(_md(v) for v in cells.values(row)),
                    factor(row.ratio),
                    cells.interval(row),
                    _md(cells.answer(row)),
                ]
                for row in own
            ),
            numbers=range(1, 5),
        )
        yield ""
    memory = list(cells.memory_cells(comparison))
    if memory:
        yield from _table(
            ["", *(_md(e) for e in comparison.engines)],
            ([label, *(_md(c) for c in own)] for label, own in memory),
            numbers=range(1, 1 + len(comparison.engines)),
        )
        yield ""
    yield "<details><summary>What it rests on</summary>"
    yield ""
    yield f"- {runs[0]}" if len(runs) == 1 else f"- A: {runs[0]}; B: {', '.join(runs[1:])}"
    yield from (f"- {_md(line)}" for line in cells.made_of(comparison))
    if rows:
        yield from (f"- {_md(line)}" for line in cells.basis(comparison, rows))
    yield from (
        f"- {_md(line)}"
        for line in (
            *cells.against_baseline(comparison),
            *cells.sources(comparison),
            *comparison.cannot_exclude,
        )
    )
    yield ""
    yield "</details>"


def _differences(comparison: RunComparison) -> Iterator[str]:
    matter, rest = cells.difference_cells(comparison)
    if matter:
        yield from _table(["differs, and matters", "A", "B"], ([_md(c) for c in row] for row in matter))
        yield ""
    if rest:
        yield f"Differs, matters less: {', '.join(_md(r) for r in rest)}"
        yield ""


def _label(row: Row) -> str:
    title, statistic, unit = cells.name(row)
    return f"{_md(title)}{f' {statistic}' if statistic else ''}, {unit}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Iterator[str]:
    right = set(numbers)
    yield f"| {' | '.join(head)} |"
    yield "|" + "|".join("---:" if n in right else "---" for n in range(len(head))) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _md(text: object) -> str:
    """One line of plain text in which nothing is markup, HTML or a mention."""
    return _MARKUP.sub(r"\\\1", clean(text, LONGEST))
