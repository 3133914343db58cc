"""The pause between turns goes on until the GPUs are as cool as at the start, or as long as is allowed."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent.event import Event

from loadgen.config import Settings
from loadgen.store.events import read_events
from loadgen.users import director as module
from loadgen.users.crew import Crew
from loadgen.users.director import Director
from loadgen.users.run import Run
from tests.unit.users.fakes import lane


class Thermometer:
    """Says each of `rises` once, the last one for ever."""

    def __init__(self, rises: Sequence[float | None]) -> None:
        self.rises = list(rises)
        self.looks = 0

    def degrees_above_start(self) -> float | None:
        self.looks += 1
        return self.rises.pop(0) if len(self.rises) > 1 else self.rises[0]


def cool_down(tmp_path: Path, telemetry: Any, **settings: Any) -> Run:
    run = Run(
        Settings(engines=(lane("a").engine.spec,), runs_dir=tmp_path, **settings), [lane("a")], clock="kernel"
    )
    director = Director(
        run,
        Crew(),
        None,  # type: ignore[arg-type]
        None,
        users_in=Event(),
        user_count=lambda: 0,
        want_users=lambda n: None,
        end=lambda: None,
        telemetry=telemetry,
    )
    with gevent.Timeout(20):
        director._cool_down()
    run.close("complete")
    return run


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COOL_POLL_S", 0.001)


def test_it_waits_until_the_hottest_is_within_five_degrees(tmp_path: Path) -> None:
    thermometer = Thermometer([30.0, 12.0, 5.1, 5.0, 99.0])
    run = cool_down(tmp_path, thermometer, cooldown_s=0.001)
    assert thermometer.looks == 4
    assert run.manifest.notes == []
    assert [e["kind"] for e in read_events(run.dir.events_path)] == [
        "run_start",
        "cooldown_start",
        "run_end",
    ]


def test_it_does_not_wait_for_ever_and_says_so(tmp_path: Path) -> None:
    run = cool_down(tmp_path, Thermometer([20.0]), cooldown_s=0.001, cooldown_max_s=0.05)
    assert run.manifest.notes == [
        "a GPU was still 20 C above its temperature at the start after a cool-down of 0.05 s: later turns "
        "begin hotter than the first"
    ]


@pytest.mark.parametrize("telemetry", [None, Thermometer([None])])
def test_without_a_gpu_only_the_pause_is_made(tmp_path: Path, telemetry: Any) -> None:
    run = cool_down(tmp_path, telemetry, cooldown_s=0.001)
    assert run.manifest.notes == []


def test_no_pause_is_asked_for_and_none_is_made(tmp_path: Path) -> None:
    thermometer = Thermometer([50.0])
    run = cool_down(tmp_path, thermometer, cooldown_s=0)
    assert thermometer.looks == 0
    assert [e["kind"] for e in read_events(run.dir.events_path)] == ["run_start", "run_end"]
