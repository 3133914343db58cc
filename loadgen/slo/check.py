"""A whole run against objectives, its validity included."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.plain import plural
from loadgen.report.judge import judge
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import RunSummary, classes, summarise_data
from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET, Judgement, judge_engine, overall
from loadgen.slo.objectives import Slo
from loadgen.store import RunDir, StoreError
from loadgen.store.manifest import INTERRUPTED
from loadgen.validity import Level, Validity


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """`engines` are the judgements by engine; `believed` is false of a run that decides nothing: a void one,
    or with `strict` a suspect one. `cut` is a sentence where the run has no end."""

    name: str
    scenario: str
    validity: Validity
    engines: dict[str, list[Judgement]]
    simulated: tuple[str, ...] = ()
    believed: bool = True
    cut: str = ""

    @property
    def answer(self) -> str:
        """Of all engines together. Where the run can't be believed nothing is met, and the one thing that can
        fail is the number of failed requests: they are counted, not timed."""
        everything = [j for judgements in self.engines.values() for j in judgements]
        if self.believed:
            return overall(everything)
        failed = any(j.answer == NOT_MET and j.objective.kind.figure == "failures" for j in everything)
        return NOT_MET if failed else NOT_DECIDABLE

    def to_dict(self) -> dict[str, Any]:
        return {
            "run": self.name,
            "scenario": self.scenario,
            "answer": self.answer,
            "believed": self.believed,
            "cut": self.cut or None,
            "validity": {
                "level": self.validity.level.word,
                "findings": [
                    {"check": f.check, "level": f.level.word, "evidence": f.evidence, "advice": f.advice}
                    for f in self.validity.findings
                ],
            },
            "simulated": list(self.simulated),
            "engines": {
                name: {"answer": overall(some), "objectives": [j.to_dict() for j in some]}
                for name, some in self.engines.items()
            },
        }


def check_run(
    run: RunDir,
    slo: Slo,
    *,
    engines: Collection[str] = (),
    strict: bool = False,
    traffic_class: str | None = None,
) -> CheckedRun:
    """Judge a run's engines, or those named in `engines` that it has, by all their requests or those of one
    traffic class. Raises StoreError, also where the run has no such class."""
    data = load_run(run)
    summary = summarise_data(data)
    summary.validity = judge(run, data, summary)
    if traffic_class is not None:
        known = classes(summary.engines)
        if traffic_class not in known:
            there = f"it has {', '.join(known)}" if known else "its requests are of one kind"
            raise StoreError(f"{data.name} has no traffic class {traffic_class!r}: {there}")
        data = data.of_class(traffic_class)
    return check_data(data, summary, slo, engines=engines, strict=strict)


def check_data(
    data: RunData, summary: RunSummary, slo: Slo, *, engines: Collection[str] = (), strict: bool = False
) -> CheckedRun:
    """The same of a run that has been read, summarised and judged."""
    assert summary.validity is not None
    unbelieved = Level.SUSPECT if strict else Level.VOID
    names = [name for name in data.engines if not engines or name in engines]
    return CheckedRun(
        data.name,
        data.scenario,
        summary.validity,
        {name: judge_engine(slo, data.engines[name]) for name in names},
        tuple(summary.simulated),
        summary.validity.level < unbelieved,
        _cut(summary, names),
    )


def _cut(summary: RunSummary, names: Collection[str]) -> str:
    """Of a run without an end (-t, Ctrl-C, killed, or going on): what it is judged by."""
    if summary.state != INTERRUPTED:
        return ""
    windows: Mapping[str, Any] = {name: summary.engines[name]["window"] for name in names}
    done = ", ".join(f"{plural(w['turns_complete'], 'complete turn')} of {n}" for n, w in windows.items())
    cut = sum(w["turns_incomplete"] for w in windows.values())
    text = f"the run was cut short, or still goes on: judged by {done or 'nothing'}"
    if not cut:
        return text
    return (
        f"{text}; what was measured of {'the turn' if cut == 1 else f'{cut} turns'} cut short does not count"
    )


def worst(runs: Collection[CheckedRun]) -> str:
    """The answer of several runs together."""
    answers = {run.answer for run in runs}
    return NOT_MET if NOT_MET in answers else MET if answers == {MET} else NOT_DECIDABLE
