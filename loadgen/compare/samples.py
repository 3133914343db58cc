"""The samples of one turn, sorted and counted: what percentiles over blocks are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadgen.compare.figures import OF_REQUESTS
from loadgen.metrics import METRICS
from loadgen.metrics.columns import Floats, Ints
from loadgen.record import OK, WARMUP
from loadgen.report.load import EngineData


@dataclass(frozen=True)
class Sample:
    """Sorted `values` and how often each occurs: exact, and small where many samples are alike, as the gaps
    of millions of events are (whole microseconds)."""

    values: Floats
    counts: Ints

    @property
    def n(self) -> int:
        return int(self.counts.sum())


BlockSamples = Mapping[str, Mapping[int, Sample]]  # figure -> block -> sample


def engine_samples(engine: EngineData) -> BlockSamples:
    """The samples of all figures that requests (or gaps) have, by block; complete turns alone."""
    columns = engine.columns
    wanted = {f.name for f in OF_REQUESTS}
    ok = (columns.word["phase"] != WARMUP) & (columns.word["outcome"] == OK)
    out: dict[str, dict[int, Sample]] = {}
    for turn in engine.turns:
        if not turn.complete:
            continue
        rows = ok & (columns.whole["turn"] == turn.turn)
        for metric in METRICS:
            if metric.name in wanted:
                sample = Sample(*metric.counted(columns, rows))
                if len(sample.values):
                    out.setdefault(metric.name, {})[turn.block] = sample
    return out
