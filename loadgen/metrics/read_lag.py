"""read_lag_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class ReadLag(Metric):
    """From the kernel having bytes of the stream to the generator reading them, as the record keeps it."""

    name = "read_lag_ms"
    title = "read lag"
    unit = "ms"
    higher_is_better = None

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["read_lag_ms"][rows])
