"""Which requests are good, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from loadgen.metrics.goodput import Limit, asked, good
from tests.unit.metrics.rows import T0, columns, row

TTFT = Limit("ttft_ms", most=True, bound=500)
ROWS = columns(
    [
        row(0, ttft_ms=400.0, tpot_ms=20.0, e2e_ms=900.0),
        row(0, ttft_ms=500.0, tpot_ms=20.0, e2e_ms=900.0),
        row(0, ttft_ms=400.0, tpot_ms=80.0, e2e_ms=5000.0, scheduled_ns=T0 - 200_000_000),
        row(0, ttft_ms=100.0, e2e_ms=100.0),  # one token: no TPOT
        row(0, ttft_ms=100.0, tpot_ms=10.0, outcome="failed", error="truncated"),
        row(0, ttft_ms=100.0, tpot_ms=10.0, outcome="cancelled"),
        row(0, ttft_ms=100.0, tpot_ms=10.0, phase="warmup"),
    ]
)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([], [0, 1, 2, 3]),
        ([TTFT], [0, 2, 3]),
        ([Limit("ttft_ms", True, 500, reached=True)], [0, 1, 2, 3]),
        ([Limit("tpot_ms", True, 50)], [0, 1, 3]),
        ([TTFT, Limit("tpot_ms", True, 50)], [0, 3]),
        ([Limit("decode_tokens_per_s", False, 40)], [0, 1, 3]),
        ([Limit("decode_tokens_per_s", False, 50)], [3]),
        ([Limit("decode_tokens_per_s", False, 50, reached=True)], [0, 1, 3]),
        ([Limit("scheduled_ttft_ms", True, 700)], [2]),  # what was not scheduled meets no such limit
        ([Limit("scheduled_e2e_ms", True, 5100)], []),
        ([Limit("ttfa_ms", True, 500)], []),
    ],
)
def test_good_requests(limits: list[Limit], expected: list[int]) -> None:
    assert list(np.flatnonzero(good(ROWS, limits))) == expected


def test_failed_requests_were_asked_for_and_cancelled_ones_were_not() -> None:
    assert list(np.flatnonzero(asked(ROWS))) == [0, 1, 2, 3, 4]
