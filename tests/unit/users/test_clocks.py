"""The offset of a worker's clock, from questions and answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.users.clocks import EXCHANGES, Sample, WorkerClock

MS = 10**6
S = 10**9


def answers(offset_ns: int, trips: list[tuple[int, int]], at: int = 100 * S) -> list[Sample]:
    """Of a clock that is `offset_ns` ahead, over ways of so many ns there and back."""
    return [Sample(at, at + there + offset_ns, at + there + back) for there, back in trips]


#  what, (there, back) in ms, the clock's true offset in ms, what is said in ms
TABLE = [
    ("no difference", [(1, 1)] * 5, 0, 0),
    ("three seconds ahead", [(1, 1)] * 5, 3000, 3000),
    ("three seconds behind", [(1, 1)] * 5, -3000, -3000),
    ("within half of the round trip nothing can be told", [(1, 1)] * 5, 0.9, 0),
    ("a difference just beyond it can", [(1, 1)] * 5, 1.1, 1.1),
    ("ways of unequal length: wrong by half of the difference", [(1, 5)] * 5, 100, 98),
    ("the quickest answer counts", [(40, 2), (1, 1), (2, 40), (9, 90), (50, 50)], 20, 20),
]


@pytest.mark.parametrize(("trips", "offset", "said"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE])
def test_offsets(trips: list[tuple[int, int]], offset: float, said: float) -> None:
    clock = WorkerClock()
    samples = answers(int(offset * MS), [(a * MS, b * MS) for a, b in trips])
    assert [clock.add(s) for s in samples] == [False] * (EXCHANGES - 1) + [True]
    assert clock.offset_ns == said * MS


def test_nothing_is_taken_off_before_the_questions_have_been_answered() -> None:
    clock = WorkerClock()
    for sample in answers(3 * S, [(MS, MS)] * (EXCHANGES - 1)):
        clock.add(sample)
    assert (clock.offset_ns, clock.best) == (0, None)


def test_a_later_series_takes_the_place_of_the_first_since_clocks_drift() -> None:
    clock = WorkerClock()
    for sample in answers(50 * MS, [(MS, MS)] * 5) + answers(80 * MS, [(9 * MS, 9 * MS)] * 5):
        clock.add(sample)
    assert clock.offset_ns == 80 * MS


def test_an_answer_before_its_question_counts_for_nothing() -> None:
    """The master's own clock was set back by a second in between."""
    clock = WorkerClock()
    assert not clock.add(Sample(10 * S, 10 * S, 9 * S))
    assert [clock.add(s) for s in answers(0, [(MS, MS)] * 5)][-1]
    assert clock.offset_ns == 0


@given(
    st.integers(-(10**12), 10**12),
    st.lists(st.tuples(st.integers(0, S), st.integers(0, S)), min_size=5, max_size=5),
)
def test_it_is_right_to_half_of_the_quickest_round_trip(offset: int, trips: list[tuple[int, int]]) -> None:
    clock = WorkerClock()
    for sample in answers(offset, trips):
        clock.add(sample)
    bound = min(a + b for a, b in trips) // 2 + 1
    error = abs(clock.offset_ns - offset)
    assert error <= (bound if clock.offset_ns else 2 * bound)
