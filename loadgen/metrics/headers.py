"""headers_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class Headers(Metric):
    """From `sent` until the response head is complete. vLLM sends it at once, llama.cpp when the request gets
    a slot."""

    name = "headers_ms"
    title = "response head"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["headers_ms"][rows])
