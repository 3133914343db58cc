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


@pytest.mark.parametrize(
    ("began_before_s", "turn_s", "measured_s"),
    [(-0.25, 0.0, 0.75), (0.0, 0.0, 1.0), (3.0, 3.0, 1.0)],  # the turn began inside, with, before the second
)
def test_how_much_of_a_second_is_measured(began_before_s: float, turn_s: float, measured_s: float) -> None:
    batch = Batch(lane("a"), MEASURE, turn=0, block=0)
    now_ns = time.time_ns()
    batch.start_mono_ns = time.monotonic_ns() - int((1 + began_before_s) * 1e9)
    stage = _stage(batch, now_ns - 1_000_000_000)
    assert stage["turn_s"] == pytest.approx(turn_s, abs=0.1)
    assert stage["measured_s"] == pytest.approx(measured_s, abs=0.1)


def test_warm_up_is_not_measured() -> None:
    batch = Batch(lane("a"), WARMUP, turn=0, block=0)
    batch.start_mono_ns = time.monotonic_ns()
    assert _stage(batch, time.time_ns())["phase"] == "warmup"
    assert _stage(batch, time.time_ns())["measured_s"] == 0
    assert _stage(None, 0)["phase"] == "idle"
