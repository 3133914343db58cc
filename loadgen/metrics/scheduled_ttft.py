"""scheduled_ttft_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class ScheduledTTFT(Metric):
    """ttft_ms counted from when the schedule wanted the request sent: ttft_ms + (sent - scheduled).

    The honest figure in an open loop: time spent waiting to be sent is time that a user would have waited.
    """

    name = "scheduled_ttft_ms"
    title = "scheduled TTFT"
    unit = "ms"
    optional = True

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["ttft_ms"][rows] + columns.scheduled_lag_ms[rows])
