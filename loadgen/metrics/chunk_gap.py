"""chunk_gap_ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from loadgen.metrics.columns import Bools, Columns, Floats, Ints
from loadgen.metrics.metric import Metric

PIECE = 2_000_000  # events looked at in one go: 16 MB a column, however long the run
COUNTED = 1 << 20  # gaps below 1.05 s are counted in a table, a place a microsecond


class ChunkGap(Metric):
    """Gaps between consecutive text-bearing events of one stream, all of them: percentiles are of gaps, not
    of means, so a stall shows. An event may carry several tokens, or half a character: a gap is not a token
    time.
    """

    name = "chunk_gap_ms"
    title = "chunk gap"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        pieces = [gaps / 1000.0 for gaps in _gaps_us(columns, rows)]
        return np.concatenate(pieces) if pieces else np.empty(0)

    def counted(self, columns: Columns, rows: Bools) -> tuple[Floats, Ints]:
        """The same, from a table of counts: millions of gaps have few different lengths in microseconds."""
        table = np.zeros(COUNTED, dtype=np.int64)
        others = []
        for gaps in _gaps_us(columns, rows):
            # A negative one (of a damaged journal) is a huge one here.
            if len(gaps) and gaps.view(f"u{gaps.itemsize}").max() >= COUNTED:
                inside = gaps.view(f"u{gaps.itemsize}") < COUNTED
                others.append(gaps[~inside].astype(np.int64))
                gaps = gaps[inside]
            if len(gaps):
                found = np.bincount(gaps)
                table[: len(found)] += found
        values = np.flatnonzero(table)
        counts = table[values]
        if others:
            more, more_counts = np.unique(np.concatenate(others), return_counts=True)
            values, counts = np.concatenate((values, more)), np.concatenate((counts, more_counts))
            order = np.argsort(values, kind="stable")
            values, counts = values[order], counts[order]
        return values / 1000.0, counts

    def mean(self, columns: Columns, rows: Bools) -> float | None:
        """The same as of the samples: the gaps of a stream add up to its length, so none has to be made."""
        counts = np.diff(columns.starts)
        streams = np.flatnonzero(rows & (counts > 1))
        gaps = int((counts[streams] - 1).sum())
        if not gaps:
            return None
        last = columns.event_us[columns.starts[1:][streams] - 1].astype(np.float64)
        return float((last - columns.event_us[columns.starts[:-1][streams]]).sum()) / gaps / 1000.0


def _gaps_us(columns: Columns, rows: Bools) -> Iterator[npt.NDArray[np.signedinteger[Any]]]:
    """The gaps of the picked rows in microseconds, about PIECE events at a time. Most of them are differences
    of 32 bits, and most turns have all rows of a piece: then nothing is copied twice."""
    picked = np.flatnonzero(rows)
    row, end = (int(picked[0]), int(picked[-1]) + 1) if len(picked) else (0, 0)
    while row < end:
        piece = int(np.searchsorted(columns.starts, columns.starts[row] + PIECE, side="right")) - 1
        piece = min(max(piece, row + 1), end)
        first, last = int(columns.starts[row]), int(columns.starts[piece])
        if last > first:
            times = columns.event_us[first:last]
            if times.itemsize > 4 or times.max() >= 2**31:
                times = times.astype(np.int64)
            gaps = np.subtract(times[1:], times[:-1])
            gaps = gaps.view(f"i{gaps.itemsize}")
            # What lies between the last event of one stream and the first of the next is no gap.
            inner = np.ones(len(gaps), dtype=np.bool_)
            begins = columns.starts[row:piece]
            inner[begins[(begins > first) & (begins < last)] - first - 1] = False
            if not rows[row:piece].all():
                counts = np.diff(columns.starts[row : piece + 1])
                inner &= np.repeat(rows[row:piece], counts)[1:]
            yield gaps[inner]
        row = piece
