"""first_event_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class FirstEvent(Metric):
    """From `sent` to the first SSE data event of any kind, the "first SSE chunk" of everyday speech: a
    role-only chunk counts. Shown beside TTFT, which it must not be taken for."""

    name = "first_event_ms"
    title = "first event"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["first_event_ms"][rows])
