from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.webui.feed import ENGINE_FIGURES, GPU_FIGURES, KINDS
from loadgen.webui.history import LAST, LEVELS, MOST, Figure, History

START = 1_796_000_000
FIGURES = {"x": (Figure("mean"), Figure("most", MOST), Figure("last", LAST))}


def fed(seconds: int) -> History:
    history = History(FIGURES)
    for s in range(seconds):
        history.put("x", "a", START + s, {"mean": s, "most": s, "last": s})
    return history


def track(found: dict) -> dict:
    (only,) = found["tracks"]
    return only


def test_only_what_is_new() -> None:
    history = fed(5)
    first = history.since(0)
    assert first["reset"]
    assert track(first)["t"] == [START + s for s in range(5)]
    assert history.since(first["cursor"])["tracks"] == []
    history.put("x", "a", START + 5, {"mean": 7.0})
    later = history.since(first["cursor"], START + 4)
    assert not later["reset"]
    assert track(later) == {
        "kind": "x",
        "name": "a",
        "t": [START + 5],
        "step": [1],
        "figures": {"mean": [7.0]},
    }


def test_workers_add_up_and_may_be_late() -> None:
    history = History(FIGURES)
    history.put("x", "a", START, {"mean": 1.0, "most": 5.0}, add=True)
    history.put("x", "a", START + 1, {"mean": 1.0}, add=True)
    cursor = history.cursor
    history.put("x", "a", START, {"mean": 2.0, "most": 3.0}, add=True)
    history.put("x", "a", START - 3, {"mean": 9.0}, add=True)
    history.put("x", "a", START - 200, {"mean": 9.0}, add=True)  # too late
    found = track(history.since(cursor))
    assert (found["t"], found["figures"]["mean"]) == ([START - 3, START], [9.0, 3.0])
    assert found["figures"]["most"] == [None, 5.0]


def test_what_is_old_is_merged() -> None:
    """An hour: ten minutes of seconds, the rest in tens."""
    found = track(fed(3600).since(0))
    assert len(found["t"]) == 600 + 300
    assert found["step"] == [10] * 300 + [1] * 600
    assert found["t"] == sorted(found["t"])
    n = 100
    first = found["t"][n] - START
    assert found["figures"]["mean"][n] == first + 4.5
    assert found["figures"]["most"][n] == found["figures"]["last"][n] == first + 9


@pytest.mark.parametrize("hours", [1, 30])
def test_bounded_however_long_it_runs(hours: int) -> None:
    """Eight engines and eight GPUs; 30 hours one of them."""
    names = [f"e{n}" for n in range(8)] if hours == 1 else ["e"]
    tracemalloc.start()
    history = History(KINDS)
    for s in range(hours * 3600):
        for name in names:
            few = ENGINE_FIGURES if hours == 1 else ENGINE_FIGURES[:1]
            history.put("engine", name, START + s, {f.name: 100.0 + s for f in few})
            if hours == 1:
                history.put("gpu", name, START + s, {f.name: 100.0 + s for f in GPU_FIGURES})
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    most = sum(kept for _, kept in LEVELS)
    assert history.buckets <= (900 * 16 if hours == 1 else most) + 32
    assert size < 25e6
    found = track({"tracks": history.since(0)["tracks"][:1]})
    assert found["t"] == sorted(set(found["t"]))


def test_a_client_that_was_away() -> None:
    history = fed(100)
    cursor = history.cursor
    for s in range(100, 2000):
        history.put("x", "a", START + s, {"mean": s})
    assert not history.since(cursor, START + 1999)["reset"]
    assert history.since(cursor, START + 99)["reset"]  # the seconds in between are merged
    assert history.since(cursor + 10**9)["reset"]  # of a server that was there before this one
    assert history.since(-5)["reset"]


def test_a_clock_that_was_set_back_begins_anew() -> None:
    history = fed(10)
    cursor = history.cursor
    history.put("x", "a", START - 3600, {"mean": 1.0})
    found = history.since(cursor)
    assert found["reset"]
    assert track(found)["t"] == [START - 3600]
    assert not history.since(found["cursor"])["reset"]


def test_marks() -> None:
    history = History(FIGURES)
    history.marks.add(history.next(), "turn", 1.0, end=True, engine="a")
    history.marks.add(history.next(), "turn", 2.0, end=True, engine="b")
    cursor = history.cursor
    history.marks.end(history.next(), "turn", 3.0, engine="a")
    history.marks.end(history.next(), "turn", 3.0, engine="nobody")
    (changed,) = history.since(cursor)["marks"]
    assert changed == {"id": 1, "kind": "turn", "t": 1.0, "open": False, "engine": "a", "end": 3.0}
    history.marks.end_all(history.next(), 9.0)
    assert [m["end"] for m in history.since(0)["marks"]] == [3.0, 9.0]
    for n in range(3000):
        history.marks.add(history.next(), "moment", n, end=False)
    assert len(history.since(0)["marks"]) == 1000


@given(st.lists(st.tuples(st.integers(0, 2000), st.floats(0, 100)), max_size=100))
def test_any_order_of_seconds(rows: list[tuple[int, float]]) -> None:
    """A client that asks in between ends up with what one gets that asks once."""
    history, mine, cursor, seen = History(FIGURES), {}, 0, None
    for n, (s, value) in enumerate(rows):
        history.put("x", "a", START + s, {"mean": value})
        if n % 3 == 0:
            found = history.since(cursor, seen)
            mine = {} if found["reset"] else mine
            cursor = found["cursor"]
            for part in found["tracks"]:
                mine.update(zip(part["t"], part["figures"]["mean"], strict=True))
                seen = max(mine)
    found = history.since(cursor, seen)
    mine = {} if found["reset"] else mine
    for part in found["tracks"]:
        mine.update(zip(part["t"], part["figures"]["mean"], strict=True))
    whole = history.since(0)["tracks"]
    fine = {
        t: v for p in whole for t, v, s in zip(p["t"], p["figures"]["mean"], p["step"], strict=True) if s == 1
    }
    assert {t: mine[t] for t in fine} == fine
