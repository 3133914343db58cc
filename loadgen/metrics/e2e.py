"""e2e_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class E2E(Metric):
    """From `sent` to the last event with generated text."""

    name = "e2e_ms"
    title = "end to end"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["e2e_ms"][rows])
