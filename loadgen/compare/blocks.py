"""What one engine did in each block: the values that are paired.

A block's value of a metric is the mean over the successful requests of the engine's turn (of all their gaps,
for the chunk gap); of throughput, requests per second and energy it is the turn's own. Turns that were cut
short have no value.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadgen.compare.figures import OF_ENERGY, OF_WINDOW
from loadgen.metrics import METRICS
from loadgen.metrics.window import measure_turn
from loadgen.record import OK, WARMUP
from loadgen.report.load import EngineData

EngineBlocks = Mapping[str, Mapping[int, float]]  # figure -> block -> value


def engine_blocks(engine: EngineData) -> EngineBlocks:
    """The values of all figures of an engine by block."""
    columns = engine.columns
    ok = (columns.word["phase"] != WARMUP) & (columns.word["outcome"] == OK)
    values: dict[str, dict[int, float]] = {}
    for turn in engine.turns:
        if not turn.complete:
            continue
        rows = ok & (columns.whole["turn"] == turn.turn)
        found: dict[str, float | None] = {
            m.name: m.mean(columns, rows) for m in METRICS if m.higher_is_better is not None
        }
        sums = measure_turn(columns, turn)
        window = sums.figures()
        found.update((f.name, window[f.name]) for f in OF_WINDOW)
        if engine.energy is not None:
            energy = engine.energy.figures([(turn, sums)])
            found.update((f.name, energy.get(f.name)) for f in OF_ENERGY)
        for name, value in found.items():
            if value is not None:
                values.setdefault(name, {})[turn.block] = value
    return values
