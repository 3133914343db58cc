"""ttfa_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class TTFA(Metric):
    """Time to first answer: from `sent` to the first event with answer text, reasoning not counted."""

    name = "ttfa_ms"
    title = "TTFA"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["ttfa_ms"][rows])
