"""send_lag_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present

LATE_MS = 10.0  # a request of an open loop that is sent later than this counts as late


class SendLag(Metric):
    """How much later than wanted the generator wrote the request."""

    name = "send_lag_ms"
    title = "send lag"
    unit = "ms"
    higher_is_better = None

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["send_lag_ms"][rows])
