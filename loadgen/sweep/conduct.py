"""The course of a sweep: one run after the other, until the planner has enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadgen.store import Suite
from loadgen.store import manifest as states
from loadgen.sweep.estimate import Pace
from loadgen.sweep.figures import Judge, step_figures
from loadgen.sweep.plan import Step, next_step
from loadgen.sweep.record import COMPLETE, FAILED, INTERRUPTED, RUNNING, StepRecord, Sweep

RunStep = Callable[[Step], int]


@dataclass
class Conductor:
    """Makes the steps of a sweep in its suite. `run_step` measures one and gives its exit code;
    `interrupted` tells whether a person has had enough; `before` and `after` are told of each step.
    sweep.json is written after each, so that what there is stays whatever happens."""

    sweep: Sweep
    suite: Suite
    run_step: RunStep
    interrupted: Callable[[], bool]
    judge: Judge | None = None
    before: Callable[[Step], None] = lambda step: None
    after: Callable[[Step, StepRecord], None] = lambda step, record: None
    failure: str = ""

    def go(self) -> str:
        """Until the sweep is over; its state. Raises StoreError where its directory can't be written or a
        run of it can't be read."""
        sweep = self.sweep
        sweep.state, sweep.end_ns = RUNNING, None
        sweep.write(self.suite.path)
        self._drop_cut_steps()
        try:
            sweep.state = self._steps()
        except BaseException:
            sweep.state = FAILED
            raise
        finally:
            sweep.end_ns = time.time_ns()
            sweep.write(self.suite.path)
        return sweep.state

    def _drop_cut_steps(self) -> None:
        """A step that was cut short is made again: what there is of it is no part of the sweep, nor of what
        `loadgen check` and `report` say of it."""
        made = {step.run for step in self.sweep.steps}
        for run in self.suite.runs():
            if run.name not in made:
                self.suite.drop(run)

    def next(self) -> Step | None:
        """The first step is for whatever engines there are; it tells which."""
        if not self.sweep.engines:
            return Step(self.sweep.plan.loads[0], ())
        return next_step(self.sweep.plan, self.sweep.history())

    def pace(self) -> Pace:
        """What the steps so far say of time."""
        sweep = self.sweep
        rates = {
            name: {n: f["requests_per_s"] or 0.0 for n, f in sweep.figures(name).items()}
            for name in sweep.engines
        }
        pace = Pace(sweep.blocks, sweep.requests, rates)
        if not sweep.steps:
            return pace
        last = sweep.steps[-1]
        measured = pace.step_s(last.load, list(last.engines)) or 0.0
        return Pace(sweep.blocks, sweep.requests, rates, max(0.0, last.seconds - measured))

    def _steps(self) -> str:
        while not self.interrupted():
            step = self.next()
            if step is None:
                return COMPLETE
            self.before(step)
            record = self._make(step)
            if record is None:
                return INTERRUPTED if self.interrupted() else FAILED
            self.sweep.steps.append(record)
            self.sweep.write(self.suite.path)
            self.after(step, record)
        return COMPLETE if self.next() is None else INTERRUPTED

    def _make(self, step: Step) -> StepRecord | None:
        """None if it was not made: a person ended it, or its run could not be. It will be made again when the
        sweep is resumed."""
        there = {run.name for run in self.suite.runs()}
        began = time.monotonic()
        code = self.run_step(step)
        new = [run for run in self.suite.runs() if run.name not in there]
        if not new:
            self.failure = f"the step of {step.load:.10g} could not be run (exit code {code})"
            return None
        run = new[-1]
        manifest = run.manifest()
        if manifest.state != states.COMPLETE and self.interrupted():
            return None
        if manifest.state not in (states.COMPLETE, states.INTERRUPTED):  # interrupted: by its time limit
            self.failure = f"the run {run.name} ended in error (exit code {code})"
            return None
        figures = step_figures(run, self.judge)
        if not self.sweep.engines:
            self.sweep.engines = _flags(manifest.settings, figures)
        if missing := [name for name in step.engines if name not in figures]:
            self.failure = f"the run {run.name} has no figures of {', '.join(missing)}"
            return None
        seconds = round(time.monotonic() - began, 1)
        return StepRecord(step.load, run.name, figures, step.searching, seconds)


def _flags(settings: dict[str, Any], figures: dict[str, Any]) -> dict[str, str]:
    """The --engine flags of the engines that were there, from the settings in the manifest."""
    return {
        e["name"]: f"{e['name']}={e['kind']}:{e['url']}"
        for e in settings.get("engines", [])
        if e["name"] in figures
    }
