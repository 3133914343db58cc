"""Comparing the engines of one run, of two runs made apart, or of suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loadgen.compare.blocks import engine_blocks
from loadgen.compare.engines import Comparison, compare_engines
from loadgen.compare.figures import OF_REQUESTS
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import Row, RunComparison
from loadgen.compare.verdict import BETTER
from loadgen.metrics import METRICS
from loadgen.report.judge import judge
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import RunSummary, summarise_data
from loadgen.store import RunDir, StoreError, Suite

# What a caller wants to know of each engine of a run, by name, while the run is read: it is read once only.
Look = Callable[[RunDir, RunData, RunSummary], Mapping[str, Any]]

_UNITS = {m.name: m.unit for m in METRICS}


def compare_target(
    a: RunDir | Suite,
    b: RunDir | Suite | None = None,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    look: Look | None = None,
) -> list[RunComparison]:
    """One comparison a scenario: of a run or a suite, or of two of them made apart. Raises StoreError."""
    first = a.runs() if isinstance(a, Suite) else [a]
    if b is None:
        return [compare_run(run, baseline=baseline, margin=margin, look=look) for run in first]
    raise StoreError("runs made apart cannot be compared yet")


def compare_run(
    run: RunDir, *, baseline: str | None = None, margin: float = MARGIN, look: Look | None = None
) -> RunComparison:
    """The engines of one run against the `baseline`, else against the first. Raises StoreError."""
    data = load_run(run)
    summary = summarise_data(data)
    names = list(data.engines)
    if baseline is not None and baseline not in names:
        raise StoreError(f"{data.name} has no engine {baseline!r}: it has {', '.join(names) or 'none'}")
    first = baseline or next(iter(names), "")
    found = compare_engines(
        {n: engine_blocks(e) for n, e in data.engines.items()}, baseline=first, margin=margin
    )
    rows = [
        _row(comparison, summary.engines[name], summary.engines[first])
        for (name, _), comparison in found.items()
        if name != first
    ]
    return RunComparison(
        runs=[data.name],
        scenario=data.scenario,
        baseline=first,
        engines=[first, *(n for n in names if n != first)] if names else [],
        rows=rows,
        validity=judge(run, data, summary),
        margin=margin,
        simulated=summary.simulated,
        infos={str(i.get("name")): i for i in summary.infos},
        seen=dict(look(run, data, summary)) if look else {},
    )


def compare_runs(
    a: RunDir,
    b: RunDir,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    look: Look | None = None,
) -> RunComparison:
    """Engines of two runs made apart, `a` before `b`. Raises StoreError."""
    raise StoreError("runs made apart cannot be compared yet")


def _row(comparison: Comparison, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Row:
    figure, ratio, decision = comparison.figure, comparison.ratio, comparison.decision
    statistic = "mean" if figure in OF_REQUESTS else "value"

    def value(of: Mapping[str, Any]) -> tuple[float | None, int]:
        if statistic == "mean":
            stats = of.get(figure.name) or {"n": 0, "mean": None}
            return stats["mean"], stats["n"]
        found = of["window"].get(figure.name, of.get("gpu", {}).get(figure.name))
        return found, of["counts"]["requests"]

    (mean, n), (base, base_n) = value(mine), value(theirs)
    return Row(
        figure=figure.name,
        title=figure.title,
        unit=_UNITS.get(figure.name, ""),
        statistic=statistic,
        higher_is_better=figure.higher_is_better,
        engine=comparison.engine,
        baseline=comparison.baseline,
        value=mean,
        baseline_value=base,
        samples=n,
        baseline_samples=base_n,
        ratio=ratio.ratio,
        low=ratio.low,
        high=ratio.high,
        blocks=ratio.blocks,
        method="paired blocks, t",
        headline=False,
        adjusted=False,
        p=None,
        p_adjusted=None,
        rough=False,
        answer=decision.answer,
        better=comparison.better if decision.answer == BETTER else None,
        needed=decision.needed,
        sentence=comparison.sentence,
    )
