"""The verdict on one engine against its baseline: of a scenario, and over all scenarios. Pure.

An engine is better in a scenario if it is better in at least one of the use's headline figures and its rival
in none. It is better over all if it is better in at least one scenario and its rival in none. A void run has
no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.compare.result import BLOCKS, Row, RunComparison
from loadgen.compare.uses import Use
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.validity.finding import Level

SPLIT = "each in its own"
VOID = "void"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`engine` against `baseline` in one scenario. `better` is the better engine of a BETTER; `rows` are the
    headline rows it rests on. `caveat` says what lessens it: suspect, simulated, made apart. `detail` is the
    load in a few words."""

    scenario: str
    use: Use
    engine: str
    baseline: str
    answer: str
    better: str | None
    rows: tuple[Row, ...]
    sentence: str
    caveat: str = ""
    detail: str = ""

    @property
    def title(self) -> str:
        return f"{self.use.title} ({self.detail})" if self.detail else self.use.title

    @property
    def said(self) -> str:
        return f"{self.sentence} ({self.caveat})" if self.caveat else self.sentence

    def won_by(self, engine: str) -> list[Row]:
        return [row for row in self.rows if row.better == engine]

    def to_dict(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "baseline": self.baseline,
            "use": self.use.name,
            "answer": self.answer,
            "better": self.better,
            "sentence": self.said,
            "because": [reference(self.scenario, row) for row in self.rows],
        }


def reference(scenario: str, row: Row) -> dict[str, str]:
    """Which row a sentence rests on."""
    return {
        "scenario": scenario,
        "figure": row.figure,
        "statistic": row.statistic,
        "engine": row.engine,
        "baseline": row.baseline,
    }


def outcomes(comparison: RunComparison, use: Use, detail: str = "") -> list[Outcome]:
    """One for each engine and its baseline, in the order of the rows."""
    pairs = dict.fromkeys((row.engine, row.baseline) for row in comparison.rows)
    return [_outcome(comparison, use, engine, baseline, detail) for engine, baseline in pairs]


def _outcome(comparison: RunComparison, use: Use, engine: str, baseline: str, detail: str) -> Outcome:
    found = (comparison.row(engine, figure, baseline=baseline) for figure in use.figures)
    rows = tuple(row for row in found if row is not None)
    answer, better = _answer(rows)
    if comparison.validity.level == Level.VOID:
        answer, better = VOID, None
    reasons = comparison.validity.reasons
    return Outcome(
        comparison.scenario,
        use,
        engine,
        baseline,
        answer,
        better,
        () if answer == VOID else rows,
        f"no verdict: the run is void, {reasons[0]}" if answer == VOID else _sentence(answer, better, rows),
        caveat(comparison, engine, baseline),
        detail,
    )


def _answer(rows: Sequence[Row]) -> tuple[str, str | None]:
    winners = list(dict.fromkeys(row.better for row in rows if row.answer == BETTER))
    if len(winners) > 1:
        return SPLIT, None
    if winners:
        return BETTER, winners[0]
    if rows and all(row.answer == NO_DIFFERENCE for row in rows):
        return NO_DIFFERENCE, None
    return NOT_DECIDABLE, None


def _sentence(answer: str, better: str | None, rows: Sequence[Row]) -> str:
    if not rows:
        return "not decidable: nothing was measured of both engines"
    parts = []
    for winner in dict.fromkeys(row.better for row in rows if row.better):
        won = [row for row in rows if row.better == winner]
        rival = won[0].baseline if winner == won[0].engine else won[0].engine
        verb = "is better than" if winner == better else "is ahead of"
        parts.append(f"{winner} {verb} {rival} in {_listed([gain(row) for row in won])}")
    if equal := [row.title for row in rows if row.answer == NO_DIFFERENCE]:
        parts.append(f"no difference that matters in {_listed(equal)}")
    if left := [row for row in rows if row.answer == NOT_DECIDABLE]:
        needed = [row.needed for row in left if row.needed]
        more = f" (about {max(needed)} blocks might decide)" if needed else ""
        parts.append(f"not decidable: {_listed([row.title for row in left])}{more}")
    return "; ".join(parts)


def gain(row: Row) -> str:
    """What the better engine of a row has, as a multiple of the other's: `TTFT 0.53 x (0.52 to 0.55)`."""
    numbers = [row.ratio, row.low, row.high]
    if row.better == row.baseline:
        numbers = [1 / n if n else None for n in (row.ratio, row.high, row.low)]
    ratio, low, high = (factor(n) for n in numbers)
    return f"{row.title} {ratio} x ({low} to {high})"


def factor(value: float | None) -> str:
    """Two to three significant digits of a ratio; `-` for None.

    >>> [factor(v) for v in (0.0123, 0.5312, 1.049, 12.34, 123.4, None)]
    ['0.012', '0.53', '1.05', '12.3', '123', '-']
    """
    if value is None:
        return "-"
    return f"{value:,.{3 if value < 0.1 else 2 if value < 10 else 1 if value < 100 else 0}f}"


def caveat(comparison: RunComparison, *engines: str) -> str:
    """What must be said with any verdict on these engines; empty if nothing."""
    said = []
    if comparison.validity.level == Level.SUSPECT:
        said.append("suspect run")
    if comparison.pairing != BLOCKS:
        said.append("from runs made apart")
    simulated = [engine for engine in engines if engine in comparison.simulated]
    if simulated:
        said.append(f"{', '.join(simulated)} simulated")
    return "; ".join(said)


@dataclass(frozen=True, slots=True)
class Overall:
    """`engine` against `baseline` over all scenarios that both are in."""

    engine: str
    baseline: str
    answer: str
    better: str | None
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("engine", "baseline", "answer", "better", "sentence")}


def overall(found: Sequence[Outcome]) -> list[Overall]:
    """Over all scenarios, one for each pair of engines."""
    pairs = dict.fromkeys((o.engine, o.baseline) for o in found)
    return [
        _overall(engine, baseline, [o for o in found if (o.engine, o.baseline) == (engine, baseline)])
        for engine, baseline in pairs
    ]


def _overall(engine: str, baseline: str, found: Sequence[Outcome]) -> Overall:
    ahead = {
        e: [o.scenario for o in found if o.better == e or (o.answer == SPLIT and o.won_by(e))]
        for e in (engine, baseline)
    }
    winners = [e for e, scenarios in ahead.items() if scenarios]
    answers = {o.answer for o in found}
    answer, better = NOT_DECIDABLE, None
    if len(winners) == 2:
        answer = SPLIT
    elif winners:
        answer, better = BETTER, winners[0]
    elif answers == {NO_DIFFERENCE}:
        answer = NO_DIFFERENCE
    elif answers == {VOID}:
        answer = VOID
    verb = "is better in" if better else "is ahead in"
    parts = [f"{e} {verb} {_listed(ahead[e])}" for e in winners]
    for said, word in (
        (NO_DIFFERENCE, "no difference that matters in"),
        (NOT_DECIDABLE, "not decidable:"),
        (VOID, "void, without a verdict:"),
    ):
        if scenarios := [o.scenario for o in found if o.answer == said]:
            parts.append(f"{word} {_listed(scenarios)}")
    caveats = list(dict.fromkeys(part for o in found for part in o.caveat.split("; ") if part))
    text = "; ".join(parts)
    return Overall(engine, baseline, answer, better, f"{text} ({'; '.join(caveats)})" if caveats else text)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
