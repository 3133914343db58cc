"""chunk_gap_ms."""

from __future__ import annotations

import numpy as np

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric


class ChunkGap(Metric):
    """Gaps between consecutive text-bearing events of one stream, all of them: percentiles are of gaps, not
    of means, so a stall shows. An event may carry several tokens, or half a character: a gap is not a token
    time.
    """

    name = "chunk_gap_ms"
    title = "chunk gap"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        if len(columns.event_us) < 2:
            return np.empty(0)
        counts = np.diff(columns.starts)
        wanted = np.repeat(rows, counts)
        first = columns.starts[:-1][counts > 0]
        wanted[first] = False  # what lies between the last event of one stream and the first of the next
        gaps = np.empty(len(columns.event_us), dtype=np.float64)
        gaps[0] = 0.0
        np.subtract(columns.event_us[1:], columns.event_us[:-1], out=gaps[1:], dtype=np.float64)
        gaps = gaps[wanted]
        gaps /= 1000.0
        return gaps

    def mean(self, columns: Columns, rows: Bools) -> float | None:
        """The same as of the samples: the gaps of a stream add up to its length, so none has to be made."""
        counts = np.diff(columns.starts)
        streams = np.flatnonzero(rows & (counts > 1))
        gaps = int((counts[streams] - 1).sum())
        if not gaps:
            return None
        last = columns.event_us[columns.starts[1:][streams] - 1].astype(np.float64)
        return float((last - columns.event_us[columns.starts[:-1][streams]]).sum()) / gaps / 1000.0
