"""Comparing the engines of one run, of two runs made apart, or of suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from loadgen.compare.differences import differences
from loadgen.compare.engines import VALUE, Comparison, Side, compare_engines, compare_pairs
from loadgen.compare.pairing import pairing_of
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import BY_PROMPT, Row, RunComparison, worst
from loadgen.compare.verdict import BETTER
from loadgen.report.judge import judge
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import RunSummary, summarise_data
from loadgen.store import Manifest, RunDir, StoreError, Suite
from loadgen.validity.finding import Level, Validity

# What a caller wants to know of each engine of a run, by name, while the run is read: it is read once only.
Look = Callable[[RunDir, RunData, RunSummary], Mapping[str, Any]]


def compare_target(
    a: RunDir | Suite,
    b: RunDir | Suite | None = None,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    look: Look | None = None,
) -> list[RunComparison]:
    """One comparison a scenario: of a run or a suite, or of two of them made apart. Raises StoreError.

    Where a suite is in it, runs of the same scenario are compared; two runs are compared whatever they are.
    """
    if b is None:
        return [compare_run(run, baseline=baseline, margin=margin, look=look) for run in _runs(a)]
    if isinstance(a, RunDir) and isinstance(b, RunDir):
        return [compare_runs(a, b, baseline=baseline, margin=margin, look=look)]
    second = {_scenario(run): run for run in reversed(_runs(b))}
    pairs = [(run, second[_scenario(run)]) for run in _runs(a) if _scenario(run) in second]
    if not pairs:
        raise StoreError(f"{a.name} and {b.name} have no scenario in common")
    return [compare_runs(x, y, baseline=baseline, margin=margin, look=look) for x, y in pairs]


def compare_run(
    run: RunDir, *, baseline: str | None = None, margin: float = MARGIN, look: Look | None = None
) -> RunComparison:
    """The engines of one run against the `baseline`, else against the first. Raises StoreError."""
    part = _Part.read(run, look)
    names = list(part.sides)
    if baseline is not None and baseline not in names:
        raise StoreError(f"{part.name} has no engine {baseline!r}; it has {', '.join(names) or 'none'}")
    first = baseline or next(iter(names), "")
    found = compare_engines(
        list(part.sides.values()),
        baseline=baseline,
        margin=margin,
        void=part.validity.level == Level.VOID,
        simulated=part.simulated,
    )
    return RunComparison(
        runs=[part.name],
        scenario=part.scenario,
        baseline=first,
        engines=sorted(names, key=lambda name: name != first),
        rows=[_row(c, part.figures) for c in found],
        validity=part.validity,
        margin=margin,
        simulated=part.simulated,
        infos=part.infos,
        seen=part.seen,
    )


def compare_runs(
    a: RunDir,
    b: RunDir,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    look: Look | None = None,
) -> RunComparison:
    """Engines of two runs made apart; raises StoreError.

    Engines that both have are compared with themselves, the first run's as the baseline, and so are the two
    that are left over if each run has one. Where nothing is shared, or a `baseline` is named, every engine of
    the other run is compared with the baseline: by default the first engine of `a`.
    """
    before, after = (_Part.read(run, look) for run in (a, b))
    named = _pairs(before, after, baseline)
    shared = before.sides.keys() & after.sides.keys()
    for part, mark in ((before, "A"), (after, "B")):
        part.rename({name: f"{name} ({mark})" if name in shared else name for name in part.sides})
    pairs = [(mine.sides[mine.names[x]], base.sides[base.names[y]]) for (mine, x), (base, y) in named]
    pairing = pairing_of(before.manifest, after.manifest)
    found = compare_pairs(
        pairs,
        paired=pairing.kind == BY_PROMPT,
        margin=margin,
        void=Level.VOID in (before.validity.level, after.validity.level),
        simulated=before.simulated + after.simulated,
    )
    figures = before.figures | after.figures
    engines = dict.fromkeys(side.name for pair in pairs for side in reversed(pair))
    scenarios = dict.fromkeys((before.scenario, after.scenario))
    held = [(y, x) if mine is after else (x, y) for (mine, x), (_, y) in named]
    return RunComparison(
        runs=[before.name, after.name],
        scenario=" and ".join(scenarios),
        baseline=pairs[0][1].name if pairs else "",
        engines=list(engines),
        rows=[_row(c, figures) for c in found],
        validity=worst([(part.name, part.validity) for part in (before, after)]),
        margin=margin,
        simulated=[name for name in before.simulated + after.simulated if name in engines],
        pairing=pairing.kind,
        cannot_exclude=list(pairing.cannot_exclude),
        differences=[asdict(d) for d in differences(before.manifest, after.manifest, held)],
        infos={name: info for name, info in (before.infos | after.infos).items() if name in engines},
        seen={name: saw for name, saw in (before.seen | after.seen).items() if name in engines},
    )


@dataclass
class _Part:
    """What is needed of a run once it has been read: its columns may be gone by then."""

    name: str
    scenario: str
    manifest: Manifest | None
    sides: dict[str, Side]
    figures: dict[str, dict[str, Any]]
    validity: Validity
    simulated: list[str]
    infos: dict[str, dict[str, Any]]
    seen: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # what its engines are called here

    @classmethod
    def read(cls, run: RunDir, look: Look | None) -> _Part:
        data = load_run(run)
        summary = summarise_data(data)
        return cls(
            name=data.name,
            scenario=data.scenario,
            manifest=data.manifest,
            sides={name: Side.of(name, engine) for name, engine in data.engines.items()},
            figures=summary.engines,
            validity=judge(run, data, summary),
            simulated=summary.simulated,
            infos={str(info.get("name")): info for info in summary.infos},
            seen=dict(look(run, data, summary)) if look else {},
        )

    def rename(self, names: dict[str, str]) -> None:
        self.names = names
        self.sides = {names[n]: Side(names[n], s.values, s.samples) for n, s in self.sides.items()}
        self.figures = {names[n]: of for n, of in self.figures.items()}
        self.infos = {names.get(n, n): info for n, info in self.infos.items()}
        self.seen = {names.get(n, n): saw for n, saw in self.seen.items()}
        self.simulated = [names[n] for n in self.simulated]


_Engine = tuple[_Part, str]


def _pairs(before: _Part, after: _Part, baseline: str | None) -> list[tuple[_Engine, _Engine]]:
    """(engine, its baseline), each with its run."""
    if baseline is None:
        shared = [name for name in before.sides if name in after.sides]
        left = [[name for name in part.sides if name not in shared] for part in (after, before)]
        if len(left[0]) == len(left[1]) == 1 or (not shared and left[1]):
            return [((after, n), (before, n)) for n in shared] + [
                ((after, name), (before, left[1][0])) for name in left[0]
            ]
        return [((after, n), (before, n)) for n in shared]
    for here, there, mark in ((before, after, "A"), (after, before, "B")):
        for name in (baseline, baseline.removesuffix(f" ({mark})")):
            if name in here.sides:
                return [((there, other), (here, name)) for other in there.sides]
    names = ", ".join(dict.fromkeys([*before.sides, *after.sides])) or "none"
    raise StoreError(f"neither run has an engine {baseline!r}; they have {names}")


def _runs(target: RunDir | Suite) -> list[RunDir]:
    return target.runs() if isinstance(target, Suite) else [target]


def _scenario(run: RunDir) -> str:
    """As the manifest says, else by the directory's name."""
    named = run.manifest().scenario if run.manifest_path.exists() else ""
    return named or run.name.partition("_")[2]


def _row(comparison: Comparison, figures: dict[str, dict[str, Any]]) -> Row:
    figure, ratio, decision = comparison.figure, comparison.ratio, comparison.decision
    value, n = _value(comparison, figures[comparison.engine])
    base, base_n = _value(comparison, figures[comparison.baseline])
    return Row(
        figure=figure.name,
        title=figure.title,
        unit=figure.unit,
        statistic=comparison.statistic,
        higher_is_better=figure.higher_is_better,
        engine=comparison.engine,
        baseline=comparison.baseline,
        value=value,
        baseline_value=base,
        samples=n,
        baseline_samples=base_n,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        blocks=ratio.blocks,
        method=comparison.method,
        headline=comparison.headline,
        adjusted=comparison.p_adjusted is not None,
        p=comparison.p,
        p_adjusted=comparison.p_adjusted,
        rough=comparison.rough,
        answer=decision.answer,
        better=comparison.better if decision.answer == BETTER else None,
        needed=decision.needed,
        sentence=comparison.sentence,
    )


def _value(comparison: Comparison, figures: dict[str, Any]) -> tuple[float | None, int]:
    """The figure as `loadgen summary` has it, and of how many samples."""
    name = comparison.figure.name
    if comparison.statistic != VALUE:
        stats = figures.get(name) or {"n": 0}
        return stats.get(comparison.statistic), stats["n"]
    value = figures["window"].get(name, figures.get("gpu", {}).get(name))
    return value, figures["counts"]["requests"]
