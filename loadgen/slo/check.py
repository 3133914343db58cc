"""A whole run against objectives, its validity included."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from loadgen.report.judge import judge
from loadgen.report.load import load_run
from loadgen.report.summary import summarise_data
from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET, Judgement, judge_engine, overall
from loadgen.slo.objectives import Slo
from loadgen.store import RunDir
from loadgen.validity import Level, Validity


@dataclass(frozen=True, slots=True)
class CheckedRun:
    """`engines` are the judgements by engine; `believed` is false of a run that decides nothing: a void one,
    or with `strict` a suspect one."""

    name: str
    scenario: str
    validity: Validity
    engines: dict[str, list[Judgement]]
    simulated: tuple[str, ...] = ()
    believed: bool = True

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


def check_run(run: RunDir, slo: Slo, *, engines: Collection[str] = (), strict: bool = False) -> CheckedRun:
    """Judge a run's engines, or those named in `engines` that it has. Raises StoreError."""
    data = load_run(run)
    summary = summarise_data(data)
    validity = judge(run, data, summary)
    unbelieved = Level.SUSPECT if strict else Level.VOID
    return CheckedRun(
        data.name,
        data.scenario,
        validity,
        {
            name: judge_engine(slo, engine)
            for name, engine in data.engines.items()
            if not engines or name in engines
        },
        tuple(summary.simulated),
        validity.level < unbelieved,
    )


def worst(runs: Collection[CheckedRun]) -> str:
    """The answer of several runs together."""
    answers = {run.answer for run in runs}
    return NOT_MET if NOT_MET in answers else MET if answers == {MET} else NOT_DECIDABLE
