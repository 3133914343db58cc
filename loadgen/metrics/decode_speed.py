"""decode_tokens_per_s."""

from __future__ import annotations

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.metrics.metric import Metric, present


class DecodeSpeed(Metric):
    """Tokens per second of one stream after its first event: 1000 / tpot_ms, per request."""

    name = "decode_tokens_per_s"
    title = "decode speed"
    unit = "tok/s"
    higher_is_better = True

    def samples(self, columns: Columns, rows: Bools) -> Floats:
        tpot = present(columns.number["tpot_ms"][rows])
        return 1000.0 / tpot[tpot > 0]
