"""A comparison as CSV: a line a row, numbers in full."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import TextIO

from loadgen.compare.result import RunComparison

ROW = (
    "figure",
    "statistic",
    "unit",
    "engine",
    "baseline",
    "value",
    "baseline_value",
    "ratio",
    "low",
    "high",
    "blocks",
    "samples",
    "baseline_samples",
    "rough",
    "answer",
    "better",
    "needed",
    "method",
    "p_adjusted",
)
COLUMNS = ("runs", "scenario", "validity", "simulated", "margin", *ROW)


def write_csv(comparisons: Iterable[RunComparison], out: TextIO) -> None:
    """Lines end in CRLF, as RFC 4180 has it; a value that does not exist is an empty cell."""
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for comparison in comparisons:
        for row in comparison.rows:
            simulated = [e for e in (row.engine, row.baseline) if e in comparison.simulated]
            head = (
                " ".join(comparison.runs),
                comparison.scenario,
                comparison.validity.level.word,
                " ".join(simulated),
                comparison.margin,
            )
            writer.writerow([_plain(v) for v in (*head, *(getattr(row, name) for name in ROW))])


def _plain(value: object) -> object:
    """Text that a spreadsheet takes for a formula gets an apostrophe in front."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
