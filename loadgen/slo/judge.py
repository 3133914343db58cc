"""Does an engine meet its objectives? `met`, `not met`, or `not decidable` from this many samples.

An objective is met, or not, only if the whole interval of the figure lies on that side of the limit. An
objective that allows nothing at all (failures<=0, goodput>=1) is about this run's requests, not about those
to come: it is met if they are so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.metrics import METRICS
from loadgen.metrics.columns import Bools
from loadgen.metrics.goodput import VALUES, asked, good
from loadgen.metrics.percentiles import rank
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals, measure_turn
from loadgen.plain import number, percent, plural
from loadgen.record import FAILED, OK, WARMUP
from loadgen.report.load import EngineData
from loadgen.slo.expression import MEAN, Kind, Objective
from loadgen.slo.intervals import (
    CONFIDENCE,
    Bounds,
    design_effect,
    enough,
    mean_interval,
    percentile_interval,
    share_interval,
)
from loadgen.slo.objectives import Slo

MET = "met"
NOT_MET = "not met"
NOT_DECIDABLE = "not decidable"
_METRICS = {m.name: m for m in METRICS}


@dataclass(frozen=True, slots=True)
class Judgement:
    """One objective, judged. `value`, `low` and `high` are in the objective's unit (shares from 0 to 1), None
    where there is none; `n` samples (turns, of what a turn has one of: `of` says which). `needed`: about how
    many would decide, None if not known. `why`: what keeps it from being decided."""

    objective: Objective
    answer: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    of: str = "request"
    needed: int | None = None
    why: str = ""

    @property
    def sentence(self) -> str:
        """What was measured, and what the answer rests on."""
        kind = self.objective.kind
        if self.value is None:
            return self.why
        interval = ""
        if self.low is not None or self.high is not None:
            interval = f"{CONFIDENCE * 100:.0f} %: {_bare(kind, self.low)} to {_bare(kind, self.high)}, "
        text = f"{_bare(kind, self.value)} {kind.unit or '%'} ({interval}{plural(self.n, self.of)})"
        if self.why:
            text += f": {self.why}"
        if self.needed is not None:
            text += f"; about {plural(self.needed, self.of)} might decide"
        return text

    def to_dict(self) -> dict[str, Any]:
        return {
            "objective": self.objective.text,
            "figure": self.objective.kind.figure,
            "statistic": self.objective.statistic,
            "limit": self.objective.limit,
            "unit": self.objective.kind.unit,
            "answer": self.answer,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "of": self.of,
            "needed": self.needed,
            "sentence": self.sentence,
        }


def judge_engine(slo: Slo, engine: EngineData) -> list[Judgement]:
    """Every objective, from the requests of the engine's complete turns; where there is none, from what
    there is."""
    measured = Measured.of(engine)
    return [_judge(objective, slo, measured) for objective in slo.objectives]


def overall(judgements: Sequence[Judgement]) -> str:
    """NOT_MET if any is not met; else NOT_DECIDABLE if any is not decidable, or there are none; else MET."""
    answers = {j.answer for j in judgements}
    for answer in (NOT_MET, NOT_DECIDABLE):
        if answer in answers:
            return answer
    return MET if answers else NOT_DECIDABLE


@dataclass(frozen=True, slots=True)
class Measured:
    """An engine's turns that count, and their sums."""

    engine: EngineData
    turns: tuple[Turn, ...]
    sums: tuple[Totals, ...]

    @classmethod
    def of(cls, engine: EngineData) -> Measured:
        turns = [t for t in engine.turns if t.complete] or engine.turns
        return cls(engine, tuple(turns), tuple(measure_turn(engine.columns, t) for t in turns))

    def rows(self) -> Iterator[Bools]:
        """The mask of each turn's requests: one at a time, as a run may have thousands of turns."""
        columns = self.engine.columns
        measured = columns.word["phase"] != WARMUP
        for turn in self.turns:
            yield measured & (columns.whole["turn"] == turn.turn)

    def counts(self, of: Bools) -> list[int]:
        """How many rows of each turn the mask picks."""
        measured = of & (self.engine.columns.word["phase"] != WARMUP)
        number = np.sort(self.engine.columns.whole["turn"][measured])
        wanted = [t.turn for t in self.turns]
        return list(map(int, np.searchsorted(number, wanted, "right") - np.searchsorted(number, wanted)))


def _judge(objective: Objective, slo: Slo, measured: Measured) -> Judgement:
    kind = objective.kind
    if kind.distribution:
        return _distribution(objective, measured)
    if kind.figure == "failures":
        failed = measured.engine.columns.word["outcome"] == FAILED
        return _share(objective, failed, asked(measured.engine.columns), measured)
    if kind.figure.startswith("goodput"):
        columns = measured.engine.columns
        for limit in slo.limits:
            if not np.isfinite(VALUES[limit.kind.figure](columns)[columns.word["outcome"] == OK]).any():
                return _undecided(objective, f"no request has a {limit.kind.title}")
        fine = good(columns, (limit.as_limit for limit in slo.limits))
        if kind.figure == "goodput":
            return _share(objective, fine, asked(columns), measured)
        seconds = [sums.from_empty_to_empty.seconds for sums in measured.sums]
        return _of_turns(objective, list(map(float, measured.counts(fine))), seconds)
    if kind.figure == "joules_per_output_token":
        return _energy(objective, measured)
    if kind.figure == "requests_per_s":
        return _of_turns(objective, [float(s.ok) for s in measured.sums], [s.seconds for s in measured.sums])
    return _of_turns(objective, [s.tokens for s in measured.sums], [s.seconds for s in measured.sums])


def _distribution(objective: Objective, measured: Measured) -> Judgement:
    metric = _METRICS[objective.kind.figure]
    columns = measured.engine.columns
    ok = columns.word["outcome"] == OK
    turns = [metric.samples(columns, rows & ok) for rows in measured.rows()]
    turns = [t for t in turns if len(t)]
    if not turns:
        return _undecided(objective, f"no successful request has a {objective.kind.title}")
    samples = np.sort(np.concatenate(turns))
    of = "gap" if metric.name == "chunk_gap_ms" else "request"
    p = objective.percentile
    if p is None:
        assert objective.statistic == MEAN
        value = float(samples.mean())
        bounds = mean_interval(value, [float(t.mean()) for t in turns])
        return _decide(objective, value, bounds, len(turns), "turn")
    below = [int((t < objective.limit).sum()) for t in turns]
    effect = design_effect(below, [len(t) for t in turns])
    value = float(samples[rank(len(samples), p)])
    bounds = percentile_interval(samples, p, effect)
    needed = enough(sum(below) / len(samples), p / 100, effect)
    return _decide(objective, value, bounds, len(samples), of, needed)


def _share(objective: Objective, hits: Bools, of: Bools, measured: Measured) -> Judgement:
    k, n = measured.counts(hits & of), measured.counts(of)
    if not sum(n):
        return _undecided(objective, "no request was measured")
    share = sum(k) / sum(n)
    if objective.limit in (0.0, 1.0):
        answer = MET if objective.holds(share) else NOT_MET
        return Judgement(objective, answer, share, n=sum(n))
    effect = design_effect(k, n)
    bounds = share_interval(sum(k), sum(n), effect)
    return _decide(objective, share, bounds, sum(n), "request", enough(share, objective.limit, effect))


def _of_turns(objective: Objective, amounts: Sequence[float], per: Sequence[float]) -> Judgement:
    """A ratio of sums, such as tokens per second: its interval is from the ratios of single turns."""
    if not sum(per) > 0:
        return _undecided(objective, "no turn was measured")
    turns = [a / p for a, p in zip(amounts, per, strict=True) if p > 0]
    value = sum(amounts) / sum(per)
    return _decide(objective, value, mean_interval(value, turns), len(turns), "turn")


def _energy(objective: Objective, measured: Measured) -> Judgement:
    energy = measured.engine.energy
    known = [
        (energy.joules[turn.turn], sums.from_empty_to_empty.tokens)
        for turn, sums in zip(measured.turns, measured.sums, strict=True)
        if energy is not None and turn.turn in energy.joules
    ]
    if not known:
        return _undecided(objective, "no turn's energy is known")
    return _of_turns(objective, [joules for joules, _ in known], [tokens for _, tokens in known])


def _decide(
    objective: Objective, value: float, bounds: Bounds, n: int, of: str, needed: int | None = None
) -> Judgement:
    low, high = bounds
    near, far = (high, low) if objective.op.startswith("<") else (low, high)
    if near is not None and objective.holds(near):
        return Judgement(objective, MET, value, low, high, n, of)
    if far is not None and not objective.holds(far):
        return Judgement(objective, NOT_MET, value, low, high, n, of)
    if low is None and high is None:
        why = "too few turns for an interval" if of == "turn" else "too few samples for an interval"
    elif near is None:
        why = "too few samples for a bound on that side"
    else:
        why = "the limit lies within the interval"
    if needed is not None and needed <= n:
        needed = None
    return Judgement(objective, NOT_DECIDABLE, value, low, high, n, of, needed, why)


def _undecided(objective: Objective, why: str) -> Judgement:
    return Judgement(objective, NOT_DECIDABLE, why=why)


def _bare(kind: Kind, value: float | None) -> str:
    """The number without its unit, shares in percent; `?` where there is no bound."""
    if value is None:
        return "?"
    return number(value) if kind.unit else percent(value).removesuffix(" %")
