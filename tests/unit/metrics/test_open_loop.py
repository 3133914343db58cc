"""What is measured of an open loop: between the first answer and the end of the schedule."""

from __future__ import annotations

import math

import pytest

from loadgen.metrics.open_loop import open_loop
from loadgen.metrics.turns import Turn, find_turns
from loadgen.metrics.window import measure_turn, served_window, total
from tests.unit.metrics.rows import T0, columns, row

S = 10**9


def turn(schedule_s: float | None, seconds: float, **more: int) -> Turn:
    return Turn(0, 0, T0, T0 + round(seconds * S), seconds, schedule_s=schedule_s, **more)


def steady(rate: float, schedule_s: float, service_s: float, tokens: int = 10) -> list[dict]:
    """A server without a queue: each request takes as long, its tokens evenly spread."""
    events = [round(service_s * 1e6 * (k + 1) / tokens) for k in range(tokens)]
    return [
        row(k / rate, service_s, output_tokens=tokens, event_us=events, scheduled_ns=T0 + round(k / rate * S))
        for k in range(round(rate * schedule_s))
    ]


@pytest.mark.parametrize("service_s", [0.5, 2.0, 7.0])
def test_a_server_that_keeps_up_serves_what_is_offered_however_slow_it_is(service_s: float) -> None:
    # Known: 4 requests of 10 tokens a second are 40 tokens/s, with 4 x service time in flight (Little).
    found = measure_turn(columns(steady(4, 20, service_s)), turn(20, 20 + service_s)).figures()
    assert found["throughput_tokens_per_s"] == pytest.approx(40, rel=0.02)
    assert found["requests_per_s"] == pytest.approx(4, rel=0.02)
    assert found["concurrency"] == pytest.approx(4 * service_s, rel=0.02)
    assert found["littles_residual"] == pytest.approx(0, abs=1e-6)


def test_a_server_that_does_not_keep_up_shows_its_own_rate() -> None:
    # One at a time, half a second each, four due a second: two are served a second, and the rest waits.
    rows = [row(k / 4, (k + 1) * 0.5 - k / 4, output_tokens=1, event_us=[1000]) for k in range(80)]
    found = measure_turn(columns(rows), turn(20, 40)).figures()
    assert found["requests_per_s"] == pytest.approx(2, rel=0.03)
    assert found["littles_residual"] == pytest.approx(0, abs=1e-6)


def test_the_window_is_the_whole_turn_where_nothing_else_makes_sense() -> None:
    records = columns(steady(4, 20, 11.0))
    slow = turn(20, 31)
    assert served_window(records, slow) is slow  # the first answer is later than half of the schedule
    closed = turn(None, 31)
    assert served_window(records, closed) is closed
    failed = columns([row(0, 1, outcome="failed")])
    assert served_window(failed, slow) is slow


def test_sums_for_energy_are_of_the_whole_turn() -> None:
    sums = total([measure_turn(columns(steady(4, 20, 2)), turn(20, 22))] * 2)
    assert sums.tokens < 1600
    assert sums.from_empty_to_empty.tokens == pytest.approx(1600)
    assert sums.from_empty_to_empty.seconds == pytest.approx(44)


def test_late_and_dropped_are_counted_over_the_turns() -> None:
    rows = [row(k + late / 1e3, 0.5, scheduled_ns=T0 + k * S) for k, late in enumerate((0.2, 9.9, 10.1, 80))]
    found = open_loop(columns(rows), [turn(8.0, 9, scheduled=6, dropped=2, peak_in_flight=3)])
    assert found == {
        "scheduled": 6,
        "schedule_s": 8.0,
        "offered_per_s": 0.75,
        "late": 2,
        "late_share": 0.5,
        "dropped": 2,
        "peak_in_flight": 3,
    }
    assert open_loop(columns(rows), [turn(None, 9)]) is None


def test_events_tell_of_the_schedule() -> None:
    start = {"kind": "turn_start", "engine": "e", "turn": 0, "t_ns": T0, "schedule_s": 5, "scheduled": 7}
    end = {"kind": "turn_end", "engine": "e", "turn": 0, "t_ns": T0 + S, "dropped": 1, "peak_in_flight": 4}
    (found,) = find_turns("e", [start, end], columns([]))
    assert (found.schedule_s, found.scheduled, found.dropped, found.peak_in_flight) == (5.0, 7, 1, 4)
    odd = {**start, "schedule_s": "5", "scheduled": None}
    (found,) = find_turns("e", [odd, end], columns([]))
    assert found.schedule_s is None
    (found,) = find_turns("e", [{**start, "scheduled": "x"}], columns([]))
    assert (found.schedule_s, found.scheduled, found.complete) == (5.0, 0, False)
    assert not math.isnan(found.seconds)
