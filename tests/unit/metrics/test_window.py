"""Throughput, concurrency and Little's residual, worked out by hand."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics.littles import littles_law, residual
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals, measure_turn, total
from tests.unit.metrics.rows import FIVE, T0, columns, row

TEN_SECONDS = Turn(turn=0, block=0, start_ns=T0, end_ns=T0 + 10 * 10**9, seconds=10.0)


def test_five_requests_by_hand() -> None:
    # request  in flight      tokens in 0..10 s                                     time in 0..10 s
    # 1        0 to 1         1+2+1+1 = 5                                           1
    # 2        1 to 3         4                                                     2
    # 3        2 to 6 failed  1 (one text event, no usage)                          4
    # 4        -1 to 2        3 at -0.5 s are outside, 2 at 0.5 s inside: 2         2
    # 5        8 to 11        8 over 4 events at 9.5, 9.9 | 10.5, 11: 2 x 2 = 4     2
    totals = measure_turn(columns(FIVE), TEN_SECONDS)
    assert totals.tokens == 16
    assert totals.straddling_tokens == 2 + 4
    assert totals.unsuccessful_tokens == 1
    assert totals.in_flight_s == pytest.approx(11)
    # 1 to 4 leave inside, after 1, 2, 4 and 3 s: X = 0.4 /s, R = 2.5 s, X R = 1.0 where N = 1.1.
    assert totals.departures == 4
    assert totals.departed_s == pytest.approx(10)
    figures = totals.figures()
    assert figures["throughput_tokens_per_s"] == pytest.approx(1.6)
    assert figures["straddling_share"] == pytest.approx(6 / 16)
    assert figures["unsuccessful_share"] == pytest.approx(1 / 16)
    assert figures["concurrency"] == pytest.approx(1.1)
    assert figures["requests_per_s"] == pytest.approx(0.3)
    assert figures["littles_residual"] == pytest.approx(0.1 / 1.1)


def test_from_empty_to_empty_littles_law_holds_to_the_rounding() -> None:
    # 16 users, each sending its next request when the last has ended, some failing: the law doesn't care.
    rng = random.Random(5)
    rows, ends = [], [0.0] * 16
    for n in range(64):
        user = min(range(16), key=ends.__getitem__)
        time_s = rng.uniform(0.5, 9.0)
        outcome = "failed" if n % 7 == 0 else "ok"
        rows.append(row(ends[user], time_s, outcome=outcome, output_tokens=8, event_us=[400_000, 500_000]))
        ends[user] += time_s
    end_ns = round(max(ends) * 1e9)
    figures = measure_turn(columns(rows), Turn(0, 0, T0, T0 + end_ns, end_ns / 1e9)).figures()
    assert figures["straddling_share"] == 0
    assert figures["littles_residual"] is not None
    assert figures["littles_residual"] < 1e-6
    # What `end` a request has matters: with the last token as the end, the law would be off by a lot.
    tokens = measure_turn(columns(rows), Turn(0, 0, T0, T0 + end_ns, end_ns / 1e9)).tokens
    assert tokens == 64 * 8


def test_several_turns_are_the_sums_over_the_sum_of_lengths() -> None:
    # 100 tokens in 10 s and 300 tokens in 20 s: 400 / 30, not the mean of 10 and 15.
    a = Totals(seconds=10, tokens=100, in_flight_s=20, departures=4, departed_s=20, ok=4)
    b = Totals(seconds=20, tokens=300, in_flight_s=20, departures=4, departed_s=20, ok=2)
    figures = total([a, b]).figures()
    assert figures["throughput_tokens_per_s"] == pytest.approx(400 / 30)
    assert figures["concurrency"] == pytest.approx(40 / 30)
    assert figures["requests_per_s"] == pytest.approx(6 / 30)
    assert figures["littles_residual"] == pytest.approx(0)


def test_nothing_measured_is_none_not_zero() -> None:
    figures = total([]).figures()
    assert figures["throughput_tokens_per_s"] is None
    assert figures["concurrency"] is None
    assert figures["littles_residual"] is None


def test_warm_up_and_other_turns_are_not_in_it() -> None:
    rows = [
        row(0, 5, output_tokens=7, event_us=[10], phase="warmup"),
        row(0, 5, output_tokens=7, event_us=[10], turn=1),
        row(0, 5, output_tokens=3, event_us=[10], phase="drain"),
    ]
    assert measure_turn(columns(rows), TEN_SECONDS).tokens == 3


def test_tokens_without_a_text_event_come_with_the_end() -> None:
    inside, outside = row(0, 5, output_tokens=7), row(0, 15, output_tokens=7)
    assert measure_turn(columns([inside]), TEN_SECONDS).tokens == 7
    assert measure_turn(columns([outside]), TEN_SECONDS).tokens == 0


def test_a_wall_clock_that_was_set_does_not_lose_tokens() -> None:
    # The second request's wall time is an hour early; the turn lasted 10 s by the monotonic clock.
    rows = [row(0, 5, output_tokens=40, event_us=[10]), row(5 - 3600, 5, output_tokens=60, event_us=[10])]
    stepped = Turn(0, 0, T0, T0 - 3590 * 10**9, seconds=10.0, clock_stepped=True)
    figures = measure_turn(columns(rows), stepped).figures()
    assert figures["throughput_tokens_per_s"] == pytest.approx(10)
    assert figures["concurrency"] == pytest.approx(1)


def test_a_request_without_an_end_lasted_as_long_as_was_seen() -> None:
    data = columns([row(e2e_ms=700.0), row(headers_ms=20.0), row(), row(e2e_ms=5.0, complete_ms=6.0)])
    assert list(data.gone_ms()) == [700.0, 20.0, 0.0, 6.0]


spans = st.lists(st.tuples(st.floats(0, 50), st.floats(0.001, 30)), min_size=1, max_size=40)


@given(spans)
def test_littles_law_holds_whatever_goes_on_inside(requests: list[tuple[float, float]]) -> None:
    data = columns([row(sent, time) for sent, time in requests])
    end_ns = round(max(sent + time for sent, time in requests) * 1e9)
    figures = measure_turn(data, Turn(0, 0, T0, T0 + end_ns, end_ns / 1e9)).figures()
    assert figures["littles_residual"] is not None
    assert figures["littles_residual"] < 0.001


@given(st.permutations(range(5)))
def test_the_order_of_the_journal_does_not_matter(order: list[int]) -> None:
    assert measure_turn(columns([FIVE[i] for i in order]), TEN_SECONDS) == measure_turn(
        columns(FIVE), TEN_SECONDS
    )


def test_a_published_table_that_cannot_be_true() -> None:
    # 16 in flight, 380 tok/s, 256 tokens each: 16 x 256 / 380 = 10.78 s a request, not 1.8 s.
    law = littles_law(16, 380, 256, 1.8)
    assert law.implied_latency_s == pytest.approx(10.779, abs=0.001)
    assert law.implied_concurrency == pytest.approx(2.672, abs=0.001)
    assert law.residual == pytest.approx(0.833, abs=0.001)
    assert not law.holds()
    assert littles_law(16, 380, 256, 16 * 256 / 380).holds(1e-9)


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, -1, 1)])
def test_a_table_without_load_says_nothing(bad: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="more than 0"):
        littles_law(*bad, 1.0)
    assert residual(0, 1, 1) is None


def test_an_empty_journal_measures_nothing() -> None:
    totals = measure_turn(columns([]), TEN_SECONDS)
    assert totals == Totals(seconds=10.0)
    assert np.isfinite(totals.tokens)
