"""Samples of each metric, from rows written by hand."""

from typing import Any

import numpy as np
import pytest

from loadgen.metrics import METRICS, ColumnBuilder, Metric
from tests.unit.metrics.rows import FIVE, T0, columns, row

BY_NAME: dict[str, Metric] = {m.name: m for m in METRICS}
ALL = [
    row(ttft_ms=180.0, first_event_ms=179.5, headers_ms=3.0, ttfa_ms=900.0, e2e_ms=6250.0, tpot_ms=25.0),
    row(ttft_ms=0.0, connect_ms=1.5, send_lag_ms=0.25, read_lag_ms=2.0, tpot_ms=0.0),
    row(),
]


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("ttft_ms", [180.0, 0.0]),  # a time of 0 is a time; None is none
        ("first_event_ms", [179.5]),
        ("headers_ms", [3.0]),
        ("ttfa_ms", [900.0]),
        ("e2e_ms", [6250.0]),
        ("tpot_ms", [25.0, 0.0]),
        ("decode_tokens_per_s", [40.0]),  # 1000 / 25; a tpot of 0 has no speed
        ("connect_ms", [1.5]),
        ("send_lag_ms", [0.25]),
        ("read_lag_ms", [2.0]),
        ("chunk_gap_ms", []),
        ("scheduled_ttft_ms", []),
        ("scheduled_e2e_ms", []),
    ],
)
def test_samples(name: str, samples: list[float]) -> None:
    data = columns(ALL)
    assert list(BY_NAME[name].samples(data, np.ones(3, dtype=np.bool_))) == samples
    assert list(BY_NAME[name].samples(columns([]), np.ones(0, dtype=np.bool_))) == []


def test_scheduled_times_count_from_the_schedule() -> None:
    # Sent 30 ms late: a TTFT of 100 ms is 130 ms from where the schedule wanted it.
    data = columns([row(scheduled_ns=T0 - 30_000_000, ttft_ms=100.0, e2e_ms=400.0)])
    one = np.ones(1, dtype=np.bool_)
    assert BY_NAME["scheduled_ttft_ms"].samples(data, one) == pytest.approx([130.0])
    assert BY_NAME["scheduled_e2e_ms"].samples(data, one) == pytest.approx([430.0])


def test_gaps_never_reach_from_one_stream_into_the_next() -> None:
    gap = BY_NAME["chunk_gap_ms"]
    data = columns(
        [
            row(event_us=[5_000, 6_000, 9_500]),
            row(),  # no events
            row(event_us=[1_000]),  # no gap
            row(event_us=[200, 200, 1_200]),  # two events at one instant
        ]
    )
    assert list(gap.samples(data, np.ones(4, dtype=np.bool_))) == [1.0, 3.5, 0.0, 1.0]
    assert list(gap.samples(data, np.array([False, True, True, True]))) == [0.0, 1.0]


def test_streams_longer_than_32_bits_of_microseconds() -> None:
    hours = 2 * 3600 * 10**6
    data = columns([row(event_us=[1, 2]), row(event_us=[hours, hours + 7], event_tokens=[1, 70_000])])
    assert list(data.event_us) == [1, 2, hours, hours + 7]
    assert list(data.event_tokens) == [0, 0, 1, 70_000]
    assert data.tokens[1] == 70_001


def test_every_metric_has_a_unit_in_its_name_and_a_definition() -> None:
    suffix = {"ms": "_ms", "tok/s": "_tokens_per_s"}
    for metric in METRICS:
        assert metric.name.endswith(suffix[metric.unit])
        assert type(metric).__doc__


@pytest.mark.parametrize(
    "bad",
    [
        {"ttft_ms": "fast"},
        {"ttft_ms": True},
        {"turn": 1.5},
        {"sent_ns": "now"},
        {"turn": 2**64},
        {"outcome": 3},
        {"event_us": [1.5]},
        {"event_us": "abc"},
        {"event_us": 7},
        {"event_us": [2**64]},
        {"event_us": [1, 2], "event_tokens": ["x", "y"]},
        {"scheduled_ns": "x"},
        {"output_tokens": []},
    ],
)
def test_a_row_of_wrong_types_leaves_no_trace(bad: dict[str, Any]) -> None:
    builder = ColumnBuilder()
    builder.add(FIVE[0])
    with pytest.raises((TypeError, ValueError, OverflowError)):
        builder.add({**FIVE[1], **bad})
    builder.add(FIVE[1])
    data = builder.build()
    assert len(data) == 2
    assert list(data.starts) == [0, 4, 6]
    assert all(
        len(c) == 2 for group in (data.number, data.whole, data.word, data.flag) for c in group.values()
    )


def test_event_tokens_of_the_wrong_length_are_not_used() -> None:
    data = columns([row(event_us=[1, 2, 3], event_tokens=[1, 1], output_tokens=9)])
    assert not data.event_tokens_known[0]
    assert data.tokens[0] == 9


def test_gaps_of_any_size_and_of_some_rows() -> None:
    # Microseconds: a gap of 75 minutes needs 33 bits; a negative one (a damaged journal) is kept as it is.
    gap = BY_NAME["chunk_gap_ms"]
    long = columns([row(event_us=[5, 4_500_000_000]), row(event_us=[]), row(event_us=[9, 7, 7])])
    some = columns([row(event_us=[1, 4, 9]), row(event_us=[2]), row(event_us=[1_000, 2_200_000, 2_200_002])])
    for data, picked, expected in (
        (long, [True, True, True], {4_499_999.995: 1, -0.002: 1, 0.0: 1}),
        (some, [True, True, True], {0.003: 1, 0.005: 1, 2_199.0: 1, 0.002: 1}),
        (some, [True, True, False], {0.003: 1, 0.005: 1}),
        (some, [False, False, True], {2_199.0: 1, 0.002: 1}),
        (some, [False, False, False], {}),
    ):
        rows = np.array(picked)
        values, counts = gap.counted(data, rows)
        assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == expected
        assert sorted(gap.samples(data, rows).tolist()) == sorted(expected)
