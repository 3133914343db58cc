"""All that a report is made of: runs, what follows from them together, sweeps, one run against another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.compare.advice import Advice
from loadgen.compare.assess import judged
from loadgen.compare.outcome import Outcome, Overall
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import RunComparison
from loadgen.compare.runs import NothingShared, compare_classes, compare_each, compare_run, compare_target
from loadgen.report.html.digest import Digest, DigestReader
from loadgen.report.offered import is_open
from loadgen.slo.objectives import Slo
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
    """Runs that differ in their users or rates, the lowest first: a sweep, or a suite that amounts to one."""

    title: str
    steps: list[Digest]
    sweep: Sweep | None = None

    @property
    def unit(self) -> str:
        """Of what there is more from step to step."""
        return "requests a second" if is_open(self.steps[0].summary.settings) else "users"


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
        """The sweeps, and whatever other runs of one scenario have three loads or more."""
        found: dict[Any, Loads] = {}
        for d in self.digests:
            sweep = self.sweeps.get(d.path.parent)
            if d.load is None:
                continue
            title = swept_scenario(d.summary.scenario, d.load)
            found.setdefault((title, sweep and d.path.parent), Loads(title, [], sweep)).steps.append(d)
        out = [g for g in found.values() if len({d.load for d in g.steps}) >= LEAST_LOADS]
        for group in out:
            group.steps.sort(key=lambda d: d.load or 0)
        return out


def results_of(
    targets: Sequence[RunDir | Suite],
    *,
    baseline: str | None = None,
    gpu_hour: float | None = None,
    slo: Slo | None = None,
) -> Results:
    """Read, judge and compare, and hold against the objectives if there are some. Two targets are compared
    with each other, too. Raises StoreError."""
    runs = runs_of(targets)
    if not runs:
        raise StoreError("there is no run to report on yet")
    read = DigestReader(slo)
    two = len(targets) == 2 and len(runs) > 1
    digests = []
    for run, comparison in zip(runs, _compared(runs, baseline, read, two=two), strict=True):
        one = read.digest(run)
        one.comparison = comparison
        one.classes = compare_classes(read(run), baseline, MARGIN)
        digests.append(one)
        if not two:
            read.forget(run)
    out = Results(digests)
    found = judged([c for d in digests for c in (d.comparison, *d.classes) if c], gpu_hour)
    for d in digests:
        d.outcomes = [o for o in found.outcomes if d.comparison and o.scenario == d.comparison.scenario]
    out.overall, out.advice = found.overall, found.advice
    if two:
        _across(out, targets[0], targets[1], baseline, gpu_hour, read)
    for folder in dict.fromkeys(d.path.parent for d in digests):
        if (folder / FILE).exists():
            out.sweeps[folder] = Sweep.read(folder)
    return out


def _compared(
    runs: Sequence[RunDir], baseline: str | None, read: DigestReader, *, two: bool
) -> Iterator[RunComparison]:
    if len(runs) == 1:
        yield compare_run(runs[0], baseline=baseline, read=read)
    elif two and baseline is not None:  # it may be `NAME (B)`: the comparison of the two says if it is nobody
        for run in runs:
            own = baseline if baseline in read(run).sides else None
            yield compare_run(run, baseline=own, read=read)
    else:
        yield from compare_each(runs, baseline=baseline, read=read)


def _across(
    out: Results,
    a: RunDir | Suite,
    b: RunDir | Suite,
    baseline: str | None,
    gpu_hour: float | None,
    read: DigestReader,
) -> None:
    try:
        found = judged(compare_target(a, b, baseline=baseline, read=read), gpu_hour)
    except NothingShared:
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
