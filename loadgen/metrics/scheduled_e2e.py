"""scheduled_e2e_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class ScheduledE2E(Metric):
    """e2e_ms counted from when the schedule wanted the request sent: e2e_ms + (sent - scheduled).

    The honest figure in an open loop: time spent waiting to be sent is time that a user would have waited.
    """

    name = "scheduled_e2e_ms"
    title = "scheduled e2e"
    unit = "ms"
    optional = True

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["e2e_ms"][rows] + columns.scheduled_lag_ms[rows])
