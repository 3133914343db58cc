"""All that a report is made of: runs, what follows from them together, sweeps, one run against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.compare.advice import Advice
from loadgen.compare.assess import assess, judged
from loadgen.compare.outcome import Outcome, Overall
from loadgen.compare.result import RunComparison
from loadgen.report.html.digest import Digest, digest
from loadgen.store import RunDir, StoreError, Suite
from loadgen.sweep.names import swept_scenario
from loadgen.sweep.record import FILE, Sweep

LEAST_LOADS = 3  # with fewer there is no curve


@dataclass
class Across:
    """A comparison of two runs made apart, as `loadgen compare A B` makes it, with its verdicts."""

    comparison: RunComparison
    outcomes: list[Outcome]


@dataclass
class Loads:
    """Runs that differ in their users, fewest first: a sweep, or a suite that amounts to one."""

    title: str
    steps: list[Digest]
    sweep: Sweep | None = None


@dataclass
class Results:
    """`overall` and `advice` are of all runs together, or of the two that are compared in `across`."""

    digests: list[Digest]
    overall: list[Overall] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    across: list[Across] = field(default_factory=list)
    sweeps: dict[Path, Sweep] = field(default_factory=dict)

    @property
    def engines(self) -> list[str]:
        """All names, each once, as they come."""
        names = [name for d in self.digests for name in d.summary.engines]
        return list(dict.fromkeys([*names, *(n for a in self.across for n in a.comparison.engines)]))

    def loads(self) -> list[Loads]:
        """The sweeps, and whatever other runs of one scenario have three numbers of users or more."""
        found: dict[Any, Loads] = {}
        for d in self.digests:
            sweep = self.sweeps.get(d.path.parent)
            if d.users is None:
                continue
            title = swept_scenario(d.summary.scenario, d.users)
            found.setdefault((title, sweep and d.path.parent), Loads(title, [], sweep)).steps.append(d)
        out = [g for g in found.values() if len({d.users for d in g.steps}) >= LEAST_LOADS]
        for group in out:
            group.steps.sort(key=lambda d: d.users or 0)
        return out


def results_of(
    targets: Sequence[RunDir | Suite], *, baseline: str | None = None, gpu_hour: float | None = None
) -> Results:
    """Read, judge and compare. Two targets are compared with each other, too. Raises StoreError."""
    digests = [digest(run, baseline=baseline) for run in runs_of(targets)]
    if not digests:
        raise StoreError("there is no run to report on yet")
    out = Results(digests)
    found = judged([d.comparison for d in digests if d.comparison], gpu_hour)
    for d in digests:
        d.outcomes = [o for o in found.outcomes if d.comparison and o.scenario == d.comparison.scenario]
    out.overall, out.advice = found.overall, found.advice
    if len(targets) == 2 and len(digests) > 1:
        _across(out, targets[0], targets[1], baseline, gpu_hour)
    for folder in dict.fromkeys(d.path.parent for d in digests):
        if (folder / FILE).exists():
            out.sweeps[folder] = Sweep.read(folder)
    return out


def _across(
    out: Results, a: RunDir | Suite, b: RunDir | Suite, baseline: str | None, gpu_hour: float | None
) -> None:
    try:
        found = assess(a, b, baseline=baseline, gpu_hour=gpu_hour)
    except StoreError:
        return  # two suites without a common scenario stand side by side
    for comparison in found.comparisons:
        outcomes = [o for o in found.outcomes if o.scenario == comparison.scenario]
        out.across.append(Across(comparison, outcomes))
    out.overall, out.advice = found.overall, found.advice


def runs_of(targets: Sequence[RunDir | Suite]) -> list[RunDir]:
    """All runs, each once."""
    found: dict[Path, RunDir] = {}
    for target in targets:
        for run in target.runs() if isinstance(target, Suite) else [target]:
            found.setdefault(run.path.resolve(), run)
    return list(found.values())
