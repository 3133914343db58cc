import locust  # noqa: F401

import io
import time
from types import SimpleNamespace

import pytest

from loadgen.config import Settings
from loadgen.record import MEASURE
from loadgen.users.crew import Batch
from loadgen.users.progress import Progress, time_left_s
from loadgen.workload.prompt import Prompt
from loadgen.workload.turns import turn_order
from tests.unit.users.fakes import lane, record


def director(**more):
    rounds = [[t] for t in turn_order("ab", 2)]
    fields = {
        "run": SimpleNamespace(settings=Settings(blocks=2, cooldown_s=5.0)),
        "stage": "warming up a",
        "stage_start": time.monotonic(),
        "active": [],
        "rounds": rounds,
        "rounds_done": 0,
        "block": 0,
        "turn_seconds": {},
    }
    return SimpleNamespace(**{**fields, **more})


def turn_in_progress(done=8, total=16, seconds=10.0):
    batch = Batch(lane("a"), MEASURE, 0, 0)
    for i in range(total):
        batch.add(Prompt(i, "x"), 8)
    batch.members = {"u": -1.0}
    for i in range(done):
        batch.claim("u")
        batch.finish(record(ttft_ms=180.0 + i, outcome="failed" if i == 0 else "ok"))
    return director(
        active=[(turn_order("ab", 2)[0], batch)],
        stage_start=time.monotonic() - seconds,
        block=1,
        rounds_done=2,
    )


@pytest.fixture
def shown():
    made = []

    def show(d, live=None):
        made.append(Progress(d, live, io.StringIO()))
        return made[-1]

    yield show
    for p in made:
        p.stop()


def test_the_line_of_a_turn(shown):
    line = shown(turn_in_progress()).line()
    assert line.startswith("block 2 of 2, a, 8/16 done, 1 failed, TTFT 184 ms so far, ")
    assert line.endswith(" s left")


def test_the_line_between_turns(shown):
    assert shown(director()).line() == "block 1 of 2, warming up a"


def test_tokens_a_second_come_from_what_has_been_read(shown):
    events = iter([100, 500])
    progress = shown(turn_in_progress(), lambda engine: next(events))
    progress.line()
    progress._rate = ("a", time.monotonic() - 2.0, 100)
    assert "200 tok/s" in progress.line()


def test_time_left_counts_turns_and_cool_downs():
    known = {"a": [10.0, 10.0], "b": [20.0]}
    d = director(rounds_done=2, turn_seconds=known)  # b and a are to come, with a cool-down before each
    assert time_left_s(d) == pytest.approx(20 + 5 + 10 + 5)
    assert time_left_s(director()) is None
    half = turn_in_progress(done=8, total=16, seconds=10.0)  # half of a turn took 10 s; one more turn follows
    assert time_left_s(half) == pytest.approx(10 + 20 + 5, abs=0.5)


def test_progress_never_raises(shown):
    out = io.StringIO()
    progress = Progress(SimpleNamespace(run=None), None, out)  # no director at all
    import gevent

    gevent.idle()
    assert not progress._greenlet.dead
    progress.stop()
    out.close()
    progress.clear()
