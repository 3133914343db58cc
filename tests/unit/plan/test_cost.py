from __future__ import annotations

import random

import pytest

from loadgen.plan.cost import Cost, fit, line_through
from loadgen.plan.measure import channel_cost
from tests.unit.users.fakes import record


def second(tokens: int, completions: int, cpu_percent: float, measured_s: float = 1.0) -> dict[str, float]:
    return {
        "tokens": tokens,
        "completions": completions,
        "failures": 0,
        "cpu_percent": cpu_percent,
        "measured_s": measured_s,
    }


def test_the_costs_that_were_put_in_are_found() -> None:
    rng = random.Random(1)
    rows = []
    for tokens, completions in [(10_000, 0)] * 5 + [(1_400, 80)] * 6 + [(5_000, 20)] * 3:
        us = 8 * tokens + 400 * completions
        rows.append(second(tokens, completions, us / 1e4 * rng.uniform(0.98, 1.02)))
    event_us, request_us = fit(rows)
    assert event_us == pytest.approx(8, rel=0.03)
    assert request_us == pytest.approx(400, rel=0.1)


def test_seconds_at_the_edges_of_a_turn_do_not_count() -> None:
    rows = [second(1000, 0, 1.0)] * 4 + [second(0, 0, 78.0, 0.0), second(100, 200, 50.0, 0.4)]
    assert fit(rows)[0] == pytest.approx(10)
    with pytest.raises(ValueError, match="only 2 whole seconds"):
        fit(rows[2:4])


def test_a_cost_is_never_negative() -> None:
    assert min(fit([second(1000, 10 * i, 5.0 - i) for i in range(5)])) >= 0


def test_a_line_through_two_points() -> None:
    assert line_through((10, 30), (20, 50)) == (2.0, 10.0)
    assert line_through((10, 30), (20, 20)) == (0.0, 30.0)  # noise: nothing gets cheaper by being longer


def test_the_committed_figures_are_whole() -> None:
    cost = Cost.default()
    numbers = {k: v for k, v in cost.to_dict().items() if k != "source"}
    assert all(isinstance(v, float | int) and v > 0 for v in numbers.values()), numbers
    assert cost.channel_share < 1
    assert Cost.from_dict({**cost.to_dict(), "later": 1}) == cost
    with pytest.raises(KeyError):
        Cost.from_dict({"event_us": 1})


def test_the_channel_is_measured_with_records_of_a_journal() -> None:
    lines = [record(point_ns=n + 1, event_us=[n * 7 + k for k in range(64)]).to_json() for n in range(50)]
    send_us, master_us, size, share = channel_cost(lines)
    assert send_us > 0
    assert master_us > send_us  # packing is zlib alone, taking in is parsing and writing too
    assert size == pytest.approx(sum(map(len, lines)) / 50)
    assert 0 < share < 1
