"""ttft_ms."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class TTFT(Metric):
    """Time to first token: from `sent` to the first event whose generated text is not empty (answer,
    reasoning, tool-call delta or completions text). A role-only chunk is not a token."""

    name = "ttft_ms"
    title = "TTFT"
    unit = "ms"

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        return present(columns.number["ttft_ms"][rows])
