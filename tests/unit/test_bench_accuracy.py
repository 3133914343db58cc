"""The judge of the benchmarks, with streams whose errors are known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from accuracy import compare, percentile  # noqa: E402

MS = 1_000_000
RECV = 1_700_000_000 * 1_000_000_000


def sent_by_server(*at_ms: float) -> dict[str, object]:
    first, last = RECV + int(at_ms[0] * MS), RECV + int(at_ms[-1] * MS)
    times = [int(t * 1000) for t in at_ms]
    return {"recv": RECV, "read": 250, "first": first, "last": last, "tokens": len(times), "t": times}


def seen_by_client(
    number: int, *at_ms: float, sent_before_ms: float = 0.0, coalesced: tuple[int, ...] = ()
) -> dict[str, object]:
    """A client that called `sent` so long before the server had the request."""
    return {
        "id": f"chatcmpl-{number}",
        "sent_ns": RECV - int(sent_before_ms * MS),
        "ttft_ms": at_ms[0],
        "event_us": [int(t * 1000) for t in at_ms],
        "coalesced": list(coalesced),
    }


def test_a_perfect_client_has_no_error() -> None:
    figures = compare([seen_by_client(1, 200, 220, 240)], {1: sent_by_server(200, 220, 240)})
    assert figures["ttft_p50_ms"] == figures["ttft_p99_ms"] == 0
    assert figures["arrival_p99_ms"] == pytest.approx(0)
    assert figures["gap_p99_ms"] == 0
    assert (figures["responses"], figures["gaps_alone"]) == (1, 2)
    assert (figures["marked"], figures["unmarked"], figures["unmatched"]) == (0, 0, 0)
    assert figures["server_p99_ms"] == 0.25


def test_a_stamp_before_the_request_was_written_is_an_error_of_sending() -> None:
    row = seen_by_client(1, 205, 225, sent_before_ms=5)
    figures = compare([row], {1: sent_by_server(200, 220)})
    assert figures["ttft_p50_ms"] == figures["ttft_bias_p50_ms"] == 5
    assert figures["send_p99_ms"] == 5
    assert figures["arrival_p50_ms"] == pytest.approx(0)


def test_late_reading_is_an_error_of_arrival_and_counts_when_unmarked() -> None:
    truth = {1: sent_by_server(200, 220)}
    late = seen_by_client(1, 203, 220)
    assert compare([late], truth)["unmarked"] == 1
    assert compare([late], truth)["arrival_p50_ms"] == pytest.approx(3)
    assert compare([{**late, "inexact": True}], truth) | {"unmarked": 0} == compare(
        [{**late, "inexact": True}], truth
    )
    merged = compare([seen_by_client(1, 203, 220, coalesced=(0,))], truth)
    assert (merged["marked"], merged["unmarked"]) == (1, 0)


def test_gaps_of_merged_events_are_left_out() -> None:
    row = seen_by_client(1, 200, 240, 240, 260, coalesced=(1,))
    figures = compare([row], {1: sent_by_server(200, 220, 240, 260)})
    assert figures["gaps_alone"] == 1  # 240 -> 260; both gaps of the merged event have gone
    assert figures["gap_p99_ms"] == 0
    assert figures["coalesced"] == 1


def test_early_is_as_wrong_as_late() -> None:
    figures = compare([seen_by_client(1, 190, 215)], {1: sent_by_server(200, 220)})
    assert figures["ttft_p50_ms"] == 10
    assert figures["ttft_bias_p50_ms"] == -10
    assert figures["gap_p50_ms"] == 5


@pytest.mark.parametrize(
    "row",
    [
        seen_by_client(2, 200, 220),  # a response that the server never finished
        seen_by_client(1, 200),  # a token is missing
        {**seen_by_client(1, 200, 220), "ttft_ms": None},
        {**seen_by_client(1, 200, 220), "id": None},
    ],
)
def test_what_can_not_be_matched_is_counted_and_not_judged(row: dict[str, object]) -> None:
    figures = compare([row], {1: sent_by_server(200, 220)})
    assert (figures["responses"], figures["unmatched"]) == (0, 1)
    assert figures["ttft_p50_ms"] is None


def test_percentiles_are_nearest_rank() -> None:
    assert percentile([], 50) is None
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(list(range(1, 101)), 99) == 99
    assert percentile([1.0, 2.0], 1) == 1.0
