"""chunk_gap_ms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

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
            inside = (gaps >= 0) & (gaps < COUNTED)
            if not inside.all():
                others.append(gaps[~inside])
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


def _gaps_us(columns: Columns, rows: Bools) -> Iterator[Ints]:
    """The gaps of the picked rows in microseconds, about PIECE events at a time."""
    picked = np.flatnonzero(rows)
    row, end = (int(picked[0]), int(picked[-1]) + 1) if len(picked) else (0, 0)
    while row < end:
        piece = int(np.searchsorted(columns.starts, columns.starts[row] + PIECE, side="right")) - 1
        piece = min(max(piece, row + 1), end)
        first, last = int(columns.starts[row]), int(columns.starts[piece])
        counts = np.diff(columns.starts[row : piece + 1])
        wanted = np.repeat(rows[row:piece], counts)
        # What lies between the last event of one stream and the first of the next is no gap.
        wanted[columns.starts[row:piece][counts > 0] - first] = False
        if wanted.any():
            times = columns.event_us[first:last].astype(np.int64)
            yield np.diff(times, prepend=0)[wanted]
        row = piece
