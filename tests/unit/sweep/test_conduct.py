"""The course of a sweep, with runs that are made instead of measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadgen.store import Suite
from loadgen.sweep.conduct import Conductor
from loadgen.sweep.plan import Plan, Step
from loadgen.sweep.record import COMPLETE, FAILED, INTERRUPTED, Sweep
from tests.unit.metrics.rows import row
from tests.unit.report.made import make_run

S = 1_000_000


class Machine:
    """Makes the run of each step: every engine answers `rate(load)` tokens in each of two turns of a second.
    `state` is the state in which runs end; after `patience` steps a person presses Ctrl-C."""

    def __init__(
        self, suite: Suite, engines: str = "ab", rate: Callable[[int], int] = lambda n: 10 * n
    ) -> None:
        self.suite = suite
        self.engines = engines
        self.rate = rate
        self.steps: list[Step] = []
        self.state = "complete"
        self.patience = 1000
        self.dead = False

    @property
    def interrupted(self) -> bool:
        return len(self.steps) >= self.patience

    def __call__(self, step: Step) -> int:
        self.steps.append(step)
        if self.dead:
            return 1
        names = step.engines or tuple(self.engines)
        rows, turns = [], []
        for number, name in enumerate([*names, *reversed(names)]):
            at = float(2 * number)
            tokens = self.rate(step.load)
            values: dict[str, Any] = {"engine": name, "turn": number, "phase": "measure", "clock": "kernel"}
            rows.append(row(at, 1.0, event_us=[S // 10, S], output_tokens=tokens, **values))
            turns.append((name, number, at, at + 1.0, True))
        engines = [{"name": n, "kind": "vllm", "url": f"http://{n}:8000"} for n in names]
        run = make_run(
            self.suite.path,
            rows,
            suite=self.suite,
            scenario=f"concurrency_{step.load}",
            engines=[{**e, "server": "vLLM"} for e in engines],
            turns=turns,
            state=self.state,
        )
        manifest = run.manifest()
        manifest.settings["engines"] = engines
        manifest.write(run.manifest_path)
        return 0


def conductor(sweep: Sweep, machine: Machine) -> Conductor:
    return Conductor(sweep, machine.suite, machine, lambda: machine.interrupted)


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite.create(tmp_path, "sweep")


def new(loads: tuple[int, ...] = (1, 2, 4, 8)) -> Sweep:
    return Sweep("s", "concurrency", Plan(loads))


def test_a_whole_sweep(suite: Suite) -> None:
    machine = Machine(suite, rate=lambda n: 10 * min(n, 2))
    assert conductor(new((1, 2, 4, 8, 16)), machine).go() == COMPLETE
    assert [s.load for s in machine.steps] == [1, 2, 4, 8]
    assert machine.steps[0].engines == (), "the first step is for whatever engines there are"
    assert machine.steps[1].engines == ("a", "b")
    found = Sweep.read(suite.path)
    assert found.state == COMPLETE
    assert found.engines == {"a": "a=vllm:http://a:8000", "b": "b=vllm:http://b:8000"}
    assert [s.run for s in found.steps] == [r.name for r in suite.runs()]
    assert found.to_dict()["engines"]["b"]["knee"]["load"] == 2
    assert [f["throughput_tokens_per_s"] for f in found.figures("a").values()] == pytest.approx(
        [10, 20, 20, 20]
    )


def test_ctrl_c_keeps_what_there_is_and_it_goes_on_later(suite: Suite) -> None:
    machine = Machine(suite)
    machine.patience = 2
    assert conductor(new(), machine).go() == INTERRUPTED
    sweep = Sweep.read(suite.path)
    assert (sweep.state, [s.load for s in sweep.steps]) == (INTERRUPTED, [1, 2]), (
        "the step had come to its end"
    )
    machine.patience = 1000
    assert conductor(sweep, machine).go() == COMPLETE
    assert [s.load for s in machine.steps] == [1, 2, 4, 8]


def test_a_step_that_was_cut_short_is_made_again(suite: Suite) -> None:
    machine = Machine(suite)
    machine.patience, machine.state = 1, "interrupted"
    assert conductor(new(), machine).go() == INTERRUPTED
    sweep = Sweep.read(suite.path)
    assert sweep.steps == []
    machine.patience, machine.state = 1000, "complete"
    conductor(sweep, machine).go()
    assert [s.load for s in machine.steps] == [1, 1, 2, 4, 8]
    # What there was of it is no part of the sweep any more.
    assert [run.name for run in suite.runs()] == [step.run for step in sweep.steps]


def test_a_time_limit_of_a_step_is_not_the_end_of_the_sweep(suite: Suite) -> None:
    machine = Machine(suite)
    machine.state = "interrupted"
    assert conductor(new((1, 2)), machine).go() == COMPLETE


@pytest.mark.parametrize(
    ("dead", "state", "says"),
    [(True, "complete", "could not be run"), (False, "failed", "ended in error")],
)
def test_a_step_that_cannot_be_made_ends_the_sweep(suite: Suite, dead: bool, state: str, says: str) -> None:
    machine = Machine(suite)
    machine.dead, machine.state = dead, state
    one = conductor(new(), machine)
    assert one.go() == FAILED
    assert says in one.failure
    assert len(machine.steps) == 1
    assert Sweep.read(suite.path).state == FAILED


def test_an_error_leaves_a_sweep_that_says_so(suite: Suite) -> None:
    def broken(step: Step) -> int:
        raise RuntimeError("no")

    one = Conductor(new(), suite, broken, lambda: False)
    with pytest.raises(RuntimeError):
        one.go()
    assert Sweep.read(suite.path).state == FAILED


def test_its_pace_tells_what_the_next_step_takes(suite: Suite) -> None:
    one = conductor(new((1, 2)), Machine(suite))
    assert one.pace().step_s(1, ["a"]) is None
    one.go()
    one.sweep.steps[-1].seconds = 60.0
    # A request a second at each load: 2 turns of 8 requests an engine, the rest of the minute is around them.
    assert one.pace().step_s(2, ["a", "b"]) == pytest.approx(60.0)
    assert one.pace().step_s(2, ["a"]) == pytest.approx(44.0)
