"""Warm-up and drift, planted in made turns, and turns without any."""

from __future__ import annotations

import doctest
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.metrics import steady
from loadgen.metrics.steady import kendall_p, mser, settling, steadiness, trend, within
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals, measure_turn
from tests.unit.metrics.rows import T0, columns, row

S = 10**9
# The waves of 16 requests at once, then 48 more: a shape that every turn has.
WAVES = np.array([800.0] * 16 + [200.0] * 48)


def noisy(shape: np.ndarray, turns: int, seed: int, spread: float = 0.1) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [shape * np.exp(draw.normal(0, spread, len(shape))) for _ in range(turns)]


def test_docstrings() -> None:
    result = doctest.testmod(steady)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.parametrize(("slow", "cut"), [(16, 16), (32, 32), (64, 64), (0, 0)])
def test_a_cold_beginning_is_found_to_the_batch(slow: int, cut: int) -> None:
    turns = [WAVES.copy() for _ in range(6)]
    turns[0][:slow] *= 3
    found = settling(turns, 16)
    assert found is not None
    assert (found["requests"], found["of"]) == (cut, 384)
    assert found["effect"] == pytest.approx(2 * slow / 384)


def test_the_shape_of_a_turn_is_no_warm_up() -> None:
    for seed in range(20):
        found = settling(noisy(WAVES, 6, seed), 16)
        assert found is not None
        assert abs(found["effect"]) < 0.05


def test_turns_of_single_users_are_batches_of_five() -> None:
    turns = [np.full(8, 100.0) for _ in range(6)]
    turns[0] *= 1.5
    found = settling(turns)
    assert found is not None
    assert (found["requests"], found["of"]) == (5, 30)
    assert found["effect"] == pytest.approx(0.5 / 6)


@pytest.mark.parametrize("turns", [[], [WAVES] * 2, [np.ones(5)] * 5, [np.ones(0)] * 9])
def test_too_little_to_tell(turns: list[np.ndarray]) -> None:
    assert settling(turns) is None


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=40))
def test_mser_cuts_at_most_half_and_nothing_better_exists(values: list[float]) -> None:
    batches = np.array(values)
    cut = mser(batches)
    assert 0 <= cut <= len(values) // 2

    def error(d: int) -> float:
        return float(np.var(batches[d:])) / (len(values) - d)

    assert error(cut) <= min(error(d) for d in range(len(values) // 2 + 1)) + 1e-12


@pytest.mark.parametrize("n", [3, 5, 6, 7])
def test_chances_are_those_of_all_orders(n: int) -> None:
    scores = [
        abs(sum(1 if b > a else -1 for a, b in itertools.combinations(order, 2)))
        for order in itertools.permutations(range(n))
    ]
    for score in set(scores) - {0}:
        assert kendall_p(score, n) == pytest.approx(sum(s >= score for s in scores) / len(scores))


def test_many_turns_have_nearly_the_chances_of_a_normal_distribution() -> None:
    assert kendall_p(200, 41) == pytest.approx(kendall_p(193, 40), rel=0.1)


def test_a_trend() -> None:
    found = trend([100, 103, 106.09, 109.27, 112.55, 115.93])
    assert found is not None
    assert found["change"] == pytest.approx(1.03**5 - 1, rel=1e-3)
    assert found["p"] == pytest.approx(2 / 720)
    assert trend([100.0] * 6) == {"change": 0.0, "p": 1.0, "turns": 6}
    assert trend(list(100 + 1e-12 * np.arange(6))) == {"change": 0.0, "p": 1.0, "turns": 6}
    assert trend([1.0, 2, 3, 4, 5]) is None  # five turns can't be told from chance
    assert trend([0.0, 1, 2, 3, 4, 5]) is None


def test_a_trend_of_thousands_of_turns() -> None:
    found = trend(list(np.exp(np.linspace(0, 0.1, 20_000))))
    assert found is not None
    assert found["change"] == pytest.approx(np.exp(0.1) - 1, rel=0.01)
    assert (found["p"] < 1e-9, found["turns"]) == (True, 20_000)


def test_drift_inside_turns() -> None:
    rising = [np.linspace(10, 13, 32) for _ in range(6)]
    found = within(rising)
    assert found is not None
    assert found["change"] == pytest.approx(0.204, abs=0.001)  # 12.565 / 10.435
    assert found["low"] == pytest.approx(found["high"])
    assert within(rising[:5]) is None
    steady = within(noisy(np.full(32, 10.0), 8, 3))
    assert steady is not None
    assert steady["low"] < 0 < steady["high"]


def test_of_records() -> None:
    """Six turns of 12 requests, two at a time; TPOT rises inside turns and from turn to turn."""
    rows, parts = [], []
    for t in range(6):
        for n in range(12):
            tpot = 10 * (1 + 0.03 * t) * (1 + 0.05 * (n // 2))
            start = 100 * t + n // 2
            values = {"turn": t, "ttft_ms": 50.0, "tpot_ms": tpot, "output_tokens": 5, "engine": "e"}
            rows.append(row(start + 0.001 * (n % 2), 0.9, **values))
    rows.append(row(3, 0.9, turn=0, outcome="failed", error="reset", tpot_ms=1e6, engine="e"))
    cols = columns(rows)
    for t in range(6):
        turn = Turn(t, t, T0 + 100 * t * S, T0 + (100 * t + 7) * S, 7.0)
        parts.append((turn, measure_turn(cols, turn)))
    found = steadiness(cols, parts)
    assert found["turns"]["tpot_ms"]["change"] == pytest.approx(0.15, rel=0.01)
    assert found["turns"]["ttft_ms"]["change"] == found["turns"]["throughput_tokens_per_s"]["change"] == 0
    # Two at each end are left out: 1.20 / 1.05; of turn 0, with a third one in flight, 1.175 / 1.075.
    expected = ((1.175 / 1.075) * (1.20 / 1.05) ** 5) ** (1 / 6) - 1
    assert found["within"]["tpot_ms"]["change"] == pytest.approx(expected)
    assert found["settling"]["ttft_ms"] == {"requests": 0, "of": 60, "effect": 0.0, "errors": 0.0}
    json.dumps(found, allow_nan=False)
    assert steadiness(columns([]), [(Turn(0, 0, 0, 0, 0.0), Totals())]) == {}
