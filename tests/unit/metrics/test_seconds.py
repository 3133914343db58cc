"""Seconds of a turn: by hand, and as parts of the whole that window.py measures."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics import seconds
from loadgen.metrics.seconds import LONGEST_S, by_second
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import measure_turn
from tests.unit.metrics.rows import FIVE, T0, columns, row

S = 10**9
TEN_SECONDS = Turn(turn=0, block=0, start_ns=T0, end_ns=T0 + 10 * S, seconds=10.0)


def every(data: Any) -> Any:
    return np.ones(len(data), dtype=np.bool_)


def test_five_requests_by_hand() -> None:
    # test_window.py has what of them is inside. Tokens by second: 0 has request 1 (5) and two tokens of
    # request 4 at 0.5 s; 1 has request 2 at 1.2 and 1.4 s; 2 the failed one's event at 2.3 s; 9 two events
    # of request 5, two tokens each, at 9.5 and 9.9 s.
    data = columns(FIVE)
    got = by_second(data, every(data), TEN_SECONDS)
    assert got.start_ns == T0
    assert list(got.tokens) == [7, 4, 1, 0, 0, 0, 0, 0, 0, 4]
    # In flight: 1 in 0..1, 2 in 1..3, 3 in 2..6, 4 in 0..2, 5 in 8..10.
    assert list(got.in_flight) == [2, 2, 2, 1, 1, 1, 0, 0, 1, 1]
    # Request 1 ends at 1 s, 4 at 2 s, 2 at 3 s; the failed one at 6 s; 5 after the end.
    assert list(got.completions) == [0, 1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert list(got.failures) == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert list(got.measured_s) == [1] * 10
    # First tokens: 100 ms at 0.1 s, 200 ms at 1.2 s, 1,500 ms at 9.5 s; request 4's came before the window.
    assert list(got.first_tokens) == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert list(got.ttft_sum_ms) == [100, 200, 0, 0, 0, 0, 0, 0, 0, 1500]


def test_whole_seconds_of_wall_time_or_of_the_turn() -> None:
    turn = Turn(0, 0, T0 + 7 * S // 10, T0 + 32 * S // 10, 2.5)
    data = columns([row(0.7, 2.5, output_tokens=2, event_us=[200_000, 2_400_000])])  # at 0.9 and 3.1 s
    wall = by_second(data, every(data), turn)
    assert wall.start_ns == T0
    assert list(wall.measured_s) == pytest.approx([0.3, 1, 1, 0.2])
    assert list(wall.tokens) == [1, 0, 0, 1]
    assert list(wall.in_flight) == pytest.approx([0.3, 1, 1, 0.2])
    own = by_second(data, every(data), turn, origin_ns=turn.start_ns)
    assert own.start_ns == turn.start_ns
    assert list(own.measured_s) == pytest.approx([1, 1, 0.5])
    assert list(own.tokens) == [1, 0, 1]


def test_a_failure_that_was_never_sent_is_placed_by_its_line() -> None:
    refused = {**row(0, outcome="failed", error="connect", point_ns=T0 + 4 * S + 1), "sent_ns": 0}
    data = columns([refused])
    got = by_second(data, every(data), TEN_SECONDS)
    assert list(np.flatnonzero(got.failures)) == [4]
    assert got.in_flight.sum() == got.tokens.sum() == got.completions.sum() == 0


@pytest.mark.parametrize("length_s", [0.0, -5.0, LONGEST_S + 1.0])
def test_no_turn_no_seconds(length_s: float) -> None:
    data = columns(FIVE)
    assert len(by_second(data, every(data), Turn(0, 0, T0, T0, length_s))) == 0


def test_nothing_in_a_turn_is_seconds_of_nothing() -> None:
    got = by_second(columns([]), np.ones(0, dtype=np.bool_), TEN_SECONDS)
    assert got.tokens.sum() == 0
    assert got.measured_s.sum() == 10


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """Any request near a window of some seconds: on its edges, outside, failed, silent, in half tokens."""
    micro = st.integers(-2_000_000, 9_000_000)
    sent_us = draw(micro | st.sampled_from([0, -100, 7_300_000, 7_300_100]))
    events = sorted(draw(st.lists(st.integers(0, 4_000_000), max_size=6)))
    end_us = draw(st.integers(events[-1] if events else 0, 4_100_000))
    more: dict[str, Any] = {
        "event_us": events,
        "outcome": draw(st.sampled_from(["ok", "failed", "cancelled"])),
    }
    if draw(st.booleans()):
        more["output_tokens"] = draw(st.integers(0, 9))
    if draw(st.booleans()):
        more["event_tokens"] = [draw(st.integers(0, 3)) for _ in events]
    return row(sent_us / 1e6, end_us / 1e6, **more)


@given(st.lists(requests(), max_size=12), st.integers(1, 7_300_000), st.integers(0, S - 1), st.booleans())
def test_the_seconds_add_up_to_the_turn(
    rows: list[dict[str, Any]], length_us: int, phase_ns: int, stepped: bool
) -> None:
    if stepped:
        length_us += 5_000_000  # long enough for every request: a turn's own requests lie in it
    start = T0 + phase_ns
    turn = Turn(0, 0, start, start + length_us * 1000, length_us / 1e6, clock_stepped=stepped)
    data = columns([{**r, "sent_ns": r["sent_ns"] + phase_ns} for r in rows])
    whole = measure_turn(data, turn)
    for origin in (None, start):
        parts = by_second(data, every(data), turn, origin)
        assert parts.measured_s.sum() == pytest.approx(whole.seconds)
        assert parts.tokens.sum() == pytest.approx(whole.tokens)
        assert parts.in_flight.sum() == pytest.approx(whole.in_flight_s, abs=1e-8 * (1 + len(rows)))
        assert parts.completions.sum() == whole.ok
        assert parts.failures.sum() == sum(r["outcome"] == "failed" for r in rows)
        assert (parts.measured_s <= 1 + 1e-12).all()
        assert (parts.in_flight >= 0).all()


def test_memory_does_not_grow_with_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    data = columns(FIVE * 7)
    expected = by_second(data, every(data), TEN_SECONDS)
    taken = []
    real = seconds._events
    monkeypatch.setattr(seconds, "CHUNK_EVENTS", 5)
    monkeypatch.setattr(seconds, "_events", lambda *a: taken.append(out := real(*a)) or out)
    got = by_second(data, every(data), TEN_SECONDS)
    assert max(len(at) for at, _, _ in taken) <= 5
    assert len(taken) > 7
    assert list(got.tokens) == pytest.approx(list(expected.tokens))


@given(st.lists(requests(), max_size=12), st.integers(1, 7_300_000), st.integers(0, S - 1))
def test_searched_seconds_are_the_counted_ones(
    rows: list[dict[str, Any]], length_us: int, phase_ns: int
) -> None:
    turn = Turn(0, 0, T0 + phase_ns, T0 + phase_ns + length_us * 1000, length_us / 1e6)
    data = columns(rows)
    searched = by_second(data, every(data), turn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seconds, "_in_order", lambda _, picked: np.zeros(len(picked), dtype=np.bool_))
        counted = by_second(data, every(data), turn)
    assert searched.tokens == pytest.approx(counted.tokens)


def test_events_out_of_order_are_counted_one_by_one() -> None:
    # A damaged journal. Tokens at 0.5, 2.5 and 1.5 s, one each; the second request's at 1.1 and 3.1 s.
    data = columns(
        [
            row(0, 3, output_tokens=3, event_us=[500_000, 2_500_000, 1_500_000]),
            row(1, 3, output_tokens=4, event_us=[100_000, 2_100_000]),
        ]
    )
    assert list(seconds._in_order(data, np.arange(2))) == [False, True]
    got = by_second(data, every(data), TEN_SECONDS)
    assert list(got.tokens) == [1, 3, 1, 2, 0, 0, 0, 0, 0, 0]
