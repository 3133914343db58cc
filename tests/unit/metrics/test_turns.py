"""Turns from events, from what a killed run left of them, and from records alone."""

from typing import Any

from loadgen.metrics.turns import Turn, find_turns
from tests.unit.metrics.rows import T0, columns, row

S = 10**9


def start(turn: int, t_s: float, **more: Any) -> dict[str, Any]:
    return {
        "kind": "turn_start",
        "engine": "e",
        "turn": turn,
        "block": turn // 2,
        "t_ns": T0 + int(t_s * S),
        **more,
    }


def end(turn: int, t_s: float, **more: Any) -> dict[str, Any]:
    return {**start(turn, t_s, **more), "kind": "turn_end"}


ROWS = columns([row(1, 2), row(2, 5), row(0, 0.5, phase="warmup")])


def test_a_turn_is_what_its_events_say() -> None:
    events = [start(0, 0.5), {**start(1, 9), "engine": "other"}, {"kind": "note"}, end(0, 8, complete=True)]
    assert find_turns("e", events, ROWS) == [Turn(0, 0, T0 + S // 2, T0 + 8 * S, 7.5)]


def test_cut_turns_say_so() -> None:
    (turn,) = find_turns("e", [start(0, 0.5), end(0, 8, complete=False)], ROWS)
    assert not turn.complete
    assert not turn.derived


def test_a_killed_run_leaves_no_turn_end() -> None:
    # The last that was seen is the end of the second request, 2 + 5 s.
    assert find_turns("e", [start(0, 0.5)], ROWS) == [
        Turn(0, 0, T0 + S // 2, T0 + 7 * S, 6.5, complete=False, derived=True)
    ]


def test_a_turn_that_was_killed_before_its_first_record() -> None:
    (turn,) = find_turns("e", [start(0, 3)], columns([]))
    assert (turn.seconds, turn.complete) == (0.0, False)


def test_without_events_the_records_are_the_turn() -> None:
    derived = Turn(0, 0, T0 + S, T0 + 7 * S, 6.0, derived=True)
    assert find_turns("e", [], ROWS) == [derived]
    assert find_turns("e", [], ROWS, turn_requests=2) == [derived]
    assert not find_turns("e", [], ROWS, turn_requests=3)[0].complete
    assert not find_turns("e", [], ROWS, run_complete=False)[0].complete


def test_the_monotonic_clock_gives_the_length() -> None:
    # The wall clock was set back by an hour in between.
    (turn,) = find_turns("e", [start(0, 0, mono_ns=50), end(0, -3590, mono_ns=50 + 10 * S)], ROWS)
    assert turn.seconds == 10.0
    assert turn.clock_stepped
    (turn,) = find_turns("e", [start(0, 0, mono_ns=50), end(0, 10, mono_ns=50 + 10 * S + 1000)], ROWS)
    assert not turn.clock_stepped


def test_events_of_wrong_types_are_passed_over() -> None:
    events = [{"kind": "turn_start", "engine": "e", "turn": "one", "t_ns": 3}, {**start(0, 0), "t_ns": None}]
    assert find_turns("e", events, ROWS)[0].derived


def test_turns_come_in_order() -> None:
    rows = columns([row(20, 1, turn=3, block=1), row(1, 1, turn=0)])
    assert [(t.turn, t.block) for t in find_turns("e", [], rows)] == [(0, 0), (3, 1)]


def test_requests_that_were_never_sent_do_not_begin_a_turn() -> None:
    refused = {**row(0, outcome="failed", error="connect"), "sent_ns": 0}
    (turn,) = find_turns("e", [], columns([refused, row(1, 2)]))
    assert (turn.start_ns, turn.seconds) == (T0 + S, 2.0)
    (turn,) = find_turns("e", [], columns([refused]))
    assert turn.seconds == 0.0
