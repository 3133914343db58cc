"""Which rows of a comparison say most, and how they are turned for a picture. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadgen.compare.outcome import Outcome
from loadgen.compare.result import Row, RunComparison

# What stands in the picture of one run beneath the figures that decide, where it was measured.
FURTHER = ("tpot_ms", "e2e_ms", "joules_per_output_token")


def main_rows(
    comparison: RunComparison, outcomes: Iterable[Outcome], further: Sequence[str] = FURTHER
) -> list[Row]:
    """The rows for a first look, pair by pair: the headline figures of the use, then the `further` ones."""
    out = []
    for outcome in outcomes:
        wanted = [*outcome.use.figures, *(f for f in further if f not in outcome.use.figures)]
        for figure in wanted:
            row = comparison.row(outcome.engine, figure, baseline=outcome.baseline)
            if row is not None and row.ratio is not None:
                out.append(row)
    return out


def gain(row: Row) -> tuple[float, float | None, float | None]:
    """(factor, low, high), turned so that above 1 the engine is better than the baseline in every figure."""
    assert row.ratio is not None
    if row.higher_is_better:
        return row.ratio, row.low, row.high
    return (1 / row.ratio, 1 / row.high if row.high else None, 1 / row.low if row.low else None)
