"""A row per engine and second, from what the generator knows while streams run."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import itertools
import time
from pathlib import Path
from typing import Any

import gevent
import orjson
import pytest

from loadgen.record import CANCELLED, FAILED, MEASURE, OK, WARMUP, RequestRecord
from loadgen.users.crew import Batch, Crew
from loadgen.users.windows import WindowWriter, _stage
from loadgen.workload.prompt import Prompt
from tests.unit.users.fakes import lane


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_a_row_per_engine_for_every_second(tmp_path: Path) -> None:
    path = tmp_path / "windows.jsonl"
    events = {"a": 100, "b": 7}
    crew = Crew()
    windows = WindowWriter(path, ["a", "b"], crew, lambda name: events[name])
    crew.join("u1")
    batch = Batch(lane("a"), MEASURE, turn=2, block=1)
    for pair in range(4):
        batch.add(Prompt(pair, "text"), 8)
    crew.begin(batch, ["u1"], [0.0])
    crew.take("u1")
    events["a"] += 30
    for outcome, lag in ((OK, 0.4), (FAILED, 0.2), (CANCELLED, 9.0)):
        windows.add(RequestRecord(engine="a", outcome=outcome, read_lag_ms=lag))
    windows.add(RequestRecord(engine="stranger"))
    with gevent.Timeout(20):
        while len(rows_of(path)) < 4:
            gevent.sleep(0.01)
    windows.stop()

    rows = rows_of(path)
    a, b = ([r for r in rows if r["engine"] == name] for name in "ab")
    assert [r["t_ns"] % 1_000_000_000 for r in rows] == [0] * len(rows)
    assert [y["t_ns"] - x["t_ns"] for x, y in itertools.pairwise(a)] == [1_000_000_000] * (len(a) - 1)
    assert [r["t_ns"] for r in b] == [r["t_ns"] for r in a]
    assert sum(r["tokens"] for r in a) == 30  # not the 100 that came before the run
    assert sum(r["tokens"] for r in b) == 0
    assert (sum(r["completions"] for r in a), sum(r["failures"] for r in a)) == (1, 1)
    assert max(r.get("read_lag_ms", 0) for r in a) == 0.4
    first = a[0]
    assert (first["phase"], first["turn"], first["block"]) == ("measure", 2, 1)
    assert (first["in_flight"], first["users"], first["worker"]) == (1, 1, "local")
    assert all(r["phase"] == "idle" and r["measured_s"] == 0 and "turn" not in r for r in b)
    assert all(r["cpu_percent"] >= 0 and r["loop_lag_ms"] >= 0 for r in rows)


SECOND = 1_000_000_000


def batch(phase: str, turn: int, began_s: float, ended_s: float | None = None) -> Batch:
    """Times in seconds after the start of the second that is looked at, which ends now."""
    made = Batch(lane("a"), phase, turn=turn, block=turn // 2)
    second_mono_ns = time.monotonic_ns() - SECOND
    made.start_mono_ns = second_mono_ns + int(began_s * 1e9)
    made.end_mono_ns = None if ended_s is None else second_mono_ns + int(ended_s * 1e9)
    return made


@pytest.mark.parametrize(
    ("batches", "phase", "turn", "turn_s", "measured_s"),
    [
        ([(MEASURE, 0, -3.0)], "measure", 0, 3.0, 1.0),  # in the middle of a turn
        ([(MEASURE, 0, 0.25)], "measure", 0, 0.0, 0.75),  # it began in this second
        ([(MEASURE, 0, -3.0, 0.4)], "measure", 0, 3.0, 0.4),  # it ended in it
        ([(MEASURE, 1, 0.1, 0.3), (MEASURE, 2, 0.5, 0.9)], "measure", 1, 0.0, 0.6),  # two short ones
        ([(WARMUP, 0, -1.0, 0.2), (MEASURE, 0, 0.3)], "measure", 0, 0.0, 0.7),
        ([(WARMUP, 0, -1.0)], "warmup", None, None, 0.0),
        ([], "idle", None, None, 0.0),
    ],
)
def test_how_much_of_a_second_is_measured(
    batches: list[tuple[Any, ...]], phase: str, turn: int | None, turn_s: float | None, measured_s: float
) -> None:
    stage = _stage([batch(*b) for b in batches], time.time_ns() - SECOND, time.time_ns())
    assert (stage["phase"], stage.get("turn")) == (phase, turn)
    assert stage.get("turn_s") == (None if turn_s is None else pytest.approx(turn_s, abs=0.1))
    assert stage["measured_s"] == pytest.approx(measured_s, abs=0.1)


def test_a_turn_shorter_than_a_second_is_seen() -> None:
    crew = Crew()
    crew.join("u1")
    short = Batch(lane("a"), MEASURE, turn=3, block=1)
    crew.begin(short, ["u1"], [0.0])
    crew.end(short)
    stage = _stage([*crew.batches, *crew.ended], time.time_ns() - SECOND, time.time_ns())
    assert (stage["phase"], stage["turn"], stage["users"]) == ("measure", 3, 0)
