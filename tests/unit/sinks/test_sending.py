"""What is done about each answer of a database, with a database that answers as told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sinks.influxdb import Refusal, WriteError
from loadgen.sinks.sending import CHECK, GIVE_UP_S, GaveUp, Sender


class Database:
    """Stores lines, but for those that are `bad`, as InfluxDB 2.x (all or nothing) or 1.x (`partial`) does.

    `troubles` are raised first, one a write. Time goes on by a second a write and by what is slept. It is
    the event of the run's end, too (`over`).
    """

    def __init__(self, bad: Callable[[str], bool] = lambda line: False, *, partial: bool = False) -> None:
        self.spec = SimpleNamespace(url="http://db", bucket="b")
        self.too_old = False
        self.stored: list[str] = []
        self.writes: list[int] = []
        self.troubles: list[WriteError] = []
        self.told: list[tuple[str, str]] = []
        self.now = 0.0
        self.over = False
        self.slowest = 10**9
        self._bad = bad
        self._partial = partial

    def write(self, lines: Sequence[str], timeout_s: float) -> None:
        self.now += 1.0
        self.writes.append(len(lines))
        if self.troubles:
            raise self.troubles.pop(0)
        if len(lines) > self.slowest:
            raise WriteError(Refusal.RETRY, "no answer", timed_out=True)
        bad = [line for line in lines if self._bad(line)]
        if not bad or self._partial:
            self.stored += [line for line in lines if not self._bad(line)]
        if bad:
            raise WriteError(
                Refusal.SPLIT, "400: bad", dropped=len(bad) if self._partial else None, too_old=self.too_old
            )

    def sender(self) -> Sender:
        writer: Any = self
        ending: Any = self
        return Sender(
            writer, ending, lambda *said: self.told.append(said), clock=lambda: self.now, sleep=self.wait
        )

    def is_set(self) -> bool:
        return self.over

    def wait(self, seconds: float) -> None:
        self.now += seconds


@given(st.lists(st.booleans(), max_size=70), st.booleans())
def test_good_lines_are_stored_and_bad_ones_found(bad: list[bool], partial: bool) -> None:
    lines = [f"m{'x' if b else ''} v={n} {n}" for n, b in enumerate(bad)]
    database = Database(lambda line: line.startswith("mx"), partial=partial)
    refused = database.sender().send(lines)
    assert refused == [(n, "400: bad") for n, b in enumerate(bad) if b]
    assert {s for s in database.stored if not s.startswith(CHECK)} == {
        line for line, b in zip(lines, bad, strict=True) if not b
    }


def test_one_bad_line_in_5000_costs_a_few_requests() -> None:
    database = Database(lambda line: line == "1234")
    assert database.sender().send([str(n) for n in range(5000)]) == [(1234, "400: bad")]
    assert len(database.writes) <= 2 * 13 + 1


def test_where_all_were_dropped_nothing_is_halved() -> None:
    database = Database(lambda line: not line.startswith(CHECK), partial=True)
    assert len(database.sender().send(["a"] * 5000)) == 5000
    assert database.writes == [5000, 1]  # and one to see whether it takes anything at all


def test_a_server_that_takes_nothing_at_all_is_the_wrong_one() -> None:
    database = Database(lambda line: True)
    with pytest.raises(WriteError, match="takes no line at all: 400: bad") as e:
        database.sender().send(["a", "b"])
    assert e.value.refusal is Refusal.STOP


def test_a_run_older_than_the_bucket_keeps_points_is_no_reason_to_bury_it() -> None:
    database = Database(lambda line: line != "new", partial=True)
    database.too_old = True
    with pytest.raises(WriteError, match="'b' keeps no points as old as this run's") as e:
        database.sender().send(["a", "b"])
    assert e.value.refusal is Refusal.STOP
    assert database.sender().send(["new", "a"]) == [
        (1, "400: bad")
    ]  # one with a wrong time is another matter


def test_a_wrong_token_stops_at_once() -> None:
    database = Database()
    database.troubles = [WriteError(Refusal.STOP, "401")]
    with pytest.raises(WriteError, match="401"):
        database.sender().send(["a"])
    assert database.writes == [1]


def test_trouble_is_waited_out_with_growing_pauses() -> None:
    database = Database()
    database.troubles = [WriteError(Refusal.RETRY, "503") for _ in range(40)]
    assert database.sender().send(["a"]) == []
    assert database.stored == ["a"]
    assert database.told[0] == ("waiting", "503")
    assert database.told[-1] == ("delivering", "")
    # 0.25 s doubled seven times reaches the longest pause, 15 s; each is between its half and its whole.
    assert 41 + 0.5 * 33 * 15 < database.now < 41 + 32 + 34 * 15


def test_the_servers_own_wish_is_heeded_within_reason() -> None:
    database = Database()
    database.troubles = [WriteError(Refusal.RETRY, "429", retry_after_s=9.0)]
    database.sender().send(["a"])
    assert database.now == 2 + 9
    database.troubles = [WriteError(Refusal.RETRY, "429", retry_after_s=9999.0)]
    database.sender().send(["a"])
    assert database.now == 11 + 2 + 15


def test_a_slow_database_gets_smaller_batches() -> None:
    database = Database()
    database.slowest = 700
    sender = database.sender()
    lines = [str(n) for n in range(5000)]
    assert sender.send(lines) == []
    assert database.stored == lines
    assert len([n for n in database.writes if n > 700]) <= 5  # each of them costs a time-out


def test_when_the_run_is_over_it_is_tried_for_ten_seconds() -> None:
    database = Database()
    database.troubles = [WriteError(Refusal.RETRY, "no answer")] * 100
    sender = database.sender()
    database.over = True
    with pytest.raises(GaveUp, match="no answer"):
        sender.send(["a"])
    assert GIVE_UP_S <= database.now <= GIVE_UP_S + 2


def test_a_database_that_hangs_is_given_up_too() -> None:
    database = Database()
    database.slowest = 0
    sender = database.sender()
    database.over = True
    with pytest.raises(GaveUp):
        sender.send([str(n) for n in range(5000)])
    assert database.now <= GIVE_UP_S + 2
