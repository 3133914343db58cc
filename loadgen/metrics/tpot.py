"""tpot_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class TPOT(Metric):
    """Time per output token after the first event, per request:
    (e2e - ttft) / (output_tokens - tokens in the first event); none where that divisor is 0."""

    name = "tpot_ms"
    title = "TPOT"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["tpot_ms"][rows])
