"""What an SLO means for a sweep: how a step is judged, and how many requests that takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadgen.report.load import RunData
from loadgen.slo import Objective, Slo, judge_engine, overall
from loadgen.slo.intervals import CONFIDENCE
from loadgen.sweep.figures import Judge, SloAnswer


def judge_of(slo: Slo) -> Judge:
    """Judges an engine's step by all objectives of the SLO."""

    def judge(data: RunData, name: str, figures: Mapping[str, Any]) -> SloAnswer:
        judgements = judge_engine(slo, data.engines[name])
        worst = overall(judgements)
        telling = tuple(f"{j.objective.text}: {j.sentence}" for j in judgements if j.answer == worst)
        return SloAnswer(worst, telling)

    return judge


def least_requests(slo: Slo) -> int:
    """The requests with which the SLO can be met at all: of fewer samples a percentile has no upper bound.

    The p-th percentile's bound is one of the n samples if p ** n is no more than half of what is left of the
    confidence: 72 samples for p95, 368 for p99. A share of good requests, or of failed ones, is as demanding
    as the percentile of the same number.
    """
    return max((_least(share) for share in map(_share, slo.objectives) if 0 < share < 1), default=1)


def _share(objective: Objective) -> float:
    if objective.percentile is not None:
        p = objective.percentile / 100
        return max(p, 1 - p)
    if objective.kind.figure in ("goodput", "failures"):
        return max(objective.limit, 1 - objective.limit)
    return 0.0


def _least(share: float) -> int:
    return math.ceil(math.log((1 - CONFIDENCE) / 2) / math.log(share))
