from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.store import RunDir, StoreError, Suite
from loadgen.sweep.find import find_sweep, sweep_lock
from loadgen.sweep.plan import Plan
from loadgen.sweep.record import Sweep
from tests.unit.sweep.made import figures, sweep


def test_it_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    plan = Plan((1, 2, 4), margin=1.1, slo=True, refine=3, stop=False)
    made = sweep(
        {
            1: figures(50, slo="met", slo_sentences=["ok"]),
            2: figures(90, slo="not met", slo_sentences=["no"]),
        },
        plan=plan,
        slo=["ttft_p95<500ms"],
        flags=["--cooldown", "0"],
        asked_engines=["a=vllm:http://127.0.0.1:8000"],
        blocks=6,
        requests_per_user=8,
        turn_requests=36,
    )
    made.write(tmp_path)
    assert Sweep.read(tmp_path) == made
    assert Sweep.read(tmp_path).history() == made.history()


@pytest.mark.parametrize(
    ("load", "requests"),
    [(1, 8), (2, 8), (3, 12), (256, 1024)],
)
def test_a_turn_has_so_many_requests_a_user_but_never_too_few(load: int, requests: int) -> None:
    assert sweep({1: figures()}).requests(load) == requests


def break_it(**changes: Any) -> str:
    return json.dumps({**sweep({1: figures()}).to_dict(), **changes})


def step(**changes: Any) -> dict[str, Any]:
    made = {"load": 1, "run": "r", "searching": False, "seconds": 1.0, "engines": {"a": figures()}}
    return made | changes


def test_that_step_is_read(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(break_it(steps=[step()]))
    assert Sweep.read(tmp_path).steps[0].run == "r"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "{}",
        break_it(format=2),
        break_it(variable="tokens"),
        break_it(loads=[4, 2]),
        break_it(steps=[{"load": 1}]),
        break_it(slo=[1]),
        break_it(steps=[step(load=-1)]),
        break_it(steps=[step(engines={"a": {**figures(), "ttft_ms": None}})]),
        break_it(steps=[step(engines={"a": {**figures(), "findings": [1]}})]),
        break_it(steps=[{"load": 1, "run": "r", "searching": False, "seconds": 1, "engines": {"a": {}}}]),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(StoreError, match=r"sweep\.json is damaged"):
        Sweep.read(tmp_path)


def test_the_latest_sweep_whatever_runs_came_after_it(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no sweep in"):
        find_sweep("latest", tmp_path)
    suite = Suite.create(tmp_path, "sweep")
    sweep({1: figures()}).write(suite.path)
    run = RunDir.create(tmp_path, "concurrency")
    run.journal_path.touch()
    for name in ("latest", suite.name, str(suite.path)):
        assert find_sweep(name, tmp_path).name == suite.name
    with pytest.raises(StoreError, match="is not a sweep"):
        find_sweep(run.name, tmp_path)


def test_a_sweep_is_made_by_one_process(tmp_path: Path) -> None:
    with (
        sweep_lock(tmp_path),
        pytest.raises(StoreError, match="goes on already, by process"),
        sweep_lock(tmp_path),
    ):
        pass
    with sweep_lock(tmp_path):
        pass
