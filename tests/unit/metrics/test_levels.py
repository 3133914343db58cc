from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from loadgen.metrics.levels import find_knee, find_stretches, levels
from loadgen.metrics.turns import Turn
from tests.unit.metrics.rows import T0, columns, row

S = 10**9
TURN = Turn(0, 0, T0, T0 + 20 * S, 20.0)


def mark(at_s: float, users: int, settled: bool = True, **more: Any) -> dict[str, Any]:
    at = {"t_ns": T0 + round(at_s * S), "mono_ns": round(at_s * S)}
    return {"kind": "users", "engine": "e", "turn": 0, "users": users, "settled": settled, **at} | more


MARKS = [
    mark(0, 1),
    mark(8, 1, settled=False),  # two were asked for
    mark(10, 2),
    mark(18, 0, settled=False),  # closed
]


def found(events: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    made = columns(rows)
    every = np.ones(len(made), dtype=np.bool_)
    return levels(made, every, find_stretches("e", events, [TURN]))


def test_a_stretch_is_a_time_with_as_many_users_as_were_asked_for() -> None:
    stretches = find_stretches("e", MARKS, [TURN])
    assert [(s.users, s.start_ns - T0, s.end_ns - T0, s.seconds) for s in stretches] == [
        (1, 0, 8 * S, 8.0),
        (2, 10 * S, 18 * S, 8.0),
    ]


def test_the_last_stretch_of_a_run_that_was_killed_ends_with_its_turn() -> None:
    (only,) = find_stretches("e", MARKS[:1], [TURN])
    assert (only.end_ns - T0, only.seconds) == (20 * S, 20.0)


@pytest.mark.parametrize(
    "odd",
    [
        mark(5, 3, engine="other"),
        mark(5, 3, turn=7),
        {**mark(5, 3), "users": "three"},
        mark(5, -3),
        mark(5, 3, t_ns=None),
        mark(5, 3, turn=None),
        {"kind": "users"},
    ],
)
def test_other_events_and_odd_ones_change_nothing(odd: dict[str, Any]) -> None:
    assert find_stretches("e", [*MARKS, odd], [TURN]) == find_stretches("e", MARKS, [TURN])


def test_a_clock_that_is_set_makes_no_stretch_longer() -> None:
    (only,) = find_stretches("e", [mark(0, 1), mark(100, 0, settled=False, mono_ns=4 * S)], [TURN])
    assert only.seconds == 4.0


def test_requests_count_where_they_were_sent_and_tokens_where_they_came() -> None:
    rows = [
        # 4 s each: two whole ones in the first stretch; of the third half of the tokens came after it.
        *(row(t, 4, event_us=[1_000_000, 3_900_000], output_tokens=8) for t in (0, 4)),
        row(7, 2, event_us=[500_000, 1_500_000], output_tokens=6),
        *(row(10, 8, event_us=[2_000_000, 7_900_000], output_tokens=8) for _ in range(2)),
        row(11, 1, outcome="failed", error="reset"),
        row(9, 0.5, event_us=[100_000, 400_000], output_tokens=100),  # between the levels
        row(18.5, 1, event_us=[100_000, 900_000], output_tokens=100),  # after the end
    ]
    one, two = found(MARKS, rows)
    assert (one["users"], one["users_min"], one["users_max"], one["seconds"]) == (1, 1, 1, 8.0)
    assert (one["requests"], one["failed"], one["ttft_ms"]["n"], one["ttft_ms"]["p50"]) == (3, 0, 3, 1000.0)
    assert one["throughput_tokens_per_s"] == (8 + 8 + 3) / 8
    assert one["concurrency"] == (4 + 4 + 1) / 8
    assert (two["users"], two["requests"], two["failed"], two["ttft_ms"]["p95"]) == (2, 3, 1, 2000.0)
    assert two["throughput_tokens_per_s"] == 2.0
    assert two["requests_per_s"] == 2 / 8


def test_stretches_with_the_same_users_are_one_level() -> None:
    events = [mark(0, 1), mark(4, 2), mark(6, 1), mark(8, 0, settled=False)]
    one, two = found(events, [row(t, 0.5, event_us=[100_000, 200_000]) for t in (0, 1, 5, 7)])
    assert (one["seconds"], one["requests"], two["seconds"], two["requests"]) == (6.0, 3, 2.0, 1)


def test_a_long_ramp_has_a_dozen_levels() -> None:
    events = [mark(n * 0.25, n) for n in range(1, 65)]
    grouped = found([*events, mark(16.25, 0, settled=False)], [])
    assert len(grouped) <= 12
    assert [(g["users_min"], g["users_max"]) for g in grouped[:2]] == [(1, 6), (7, 12)]
    assert sum(g["seconds"] for g in grouped) == pytest.approx(16.0)
    assert grouped[0]["users"] == pytest.approx(3.5)


def level(users: int, throughput: float | None) -> dict[str, Any]:
    return {"users": users, "throughput_tokens_per_s": throughput}


def test_the_knee_is_where_more_users_bring_no_more_throughput() -> None:
    curve = [level(1, 100.0), level(2, 200.0), level(4, 300.0), level(8, 305.0), level(16, 302.0)]
    assert find_knee(curve) == {"users": 4, "below": 2, "throughput_tokens_per_s": 300.0}
    assert find_knee(curve[:3]) is None
    assert find_knee([level(1, None), level(2, None)]) is None
