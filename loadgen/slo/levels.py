"""Up to how many users does an engine keep its objectives? For runs in which their number varied.

Every stretch with as many users as were asked for is judged like a turn, from the requests that were sent in
it: a level's throughput here has none of the tokens of requests from before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loadgen.metrics.levels import Stretch, grouped, sent_in
from loadgen.metrics.turns import Turn
from loadgen.report.load import EngineData
from loadgen.slo.judge import judge_engine, overall
from loadgen.slo.objectives import Slo
from loadgen.sweep.curve import slo_edge
from loadgen.sweep.point import Point


def judge_levels(slo: Slo, engine: EngineData, stretches: Sequence[Stretch]) -> list[str]:
    """met, not met or not decidable, of each level, in the order of loadgen.metrics.levels."""
    return [overall(judge_engine(slo, _as_turns(engine, some))) for some in grouped(stretches)]


def edge(levels: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """{"users": the most that keep the objectives, below the fewest that don't; "broken": those}; None where
    no level was found to be so. `levels` have their answers as `slo`."""
    found = slo_edge([Point(round(v["users"]), v["throughput_tokens_per_s"], v["slo"]) for v in levels])
    return {"users": found.within, "broken": found.broken}


def _as_turns(engine: EngineData, stretches: Sequence[Stretch]) -> EngineData:
    columns = engine.columns
    number = np.full(len(columns), -1, dtype=np.int64)
    for n, stretch in enumerate(stretches):
        number[sent_in(columns, stretch)] = n
    picked = columns.picked(number >= 0)
    picked = replace(picked, whole={**picked.whole, "turn": number[number >= 0]})
    turns = [Turn(n, n, s.start_ns, s.end_ns, s.seconds) for n, s in enumerate(stretches)]
    return EngineData(picked, turns, {})
