"""connect_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class Connect(Metric):
    """TCP and TLS handshake, for requests that made a connection of their own. Never part of TTFT."""

    name = "connect_ms"
    title = "connect"
    unit = "ms"
    higher_is_better = None

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["connect_ms"][rows])
