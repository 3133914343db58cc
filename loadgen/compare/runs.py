"""Comparing the engines of one run, of two runs made apart, or of suites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from loadgen.compare.differences import differences
from loadgen.compare.engines import VALUE, Comparison, compare_engines, compare_pairs
from loadgen.compare.pairing import pairing_of
from loadgen.compare.part import Look, Part, Reader
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import BY_PROMPT, Row, RunComparison, worst
from loadgen.compare.verdict import BETTER
from loadgen.store import RunDir, StoreError, Suite
from loadgen.validity.finding import Level


class NothingShared(StoreError):
    """Two suites without a scenario in common."""


def compare_target(
    a: RunDir | Suite,
    b: RunDir | Suite | None = None,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    margin: float = MARGIN,
    look: Look | None = None,
    read: Reader | None = None,
) -> list[RunComparison]:
    """One comparison a scenario, and one for each traffic class of a run that has several: of a run or a
    suite, or of two of them made apart. Raises StoreError.

    Where a suite is in it, runs of the same scenario are compared; two runs are compared whatever they are.
    With `all_pairs` every engine of a run is compared with every other one, not with its baseline alone.
    `look` is what else is wanted of each run; a `read` of one's own, which has such a look, may have read
    some of the runs already.
    """
    read = read or Reader(look)
    if isinstance(a, RunDir) and b is None:
        return [
            compare_run(a, baseline=baseline, all_pairs=all_pairs, margin=margin, read=read),
            *compare_classes(read(a), baseline, margin, all_pairs=all_pairs),
        ]
    if b is None:
        runs = _runs(a)
        whole = compare_each(runs, baseline=baseline, all_pairs=all_pairs, margin=margin, read=read)
        found = []
        for run, one in zip(runs, whole, strict=False):
            found += [one, *compare_classes(read(run), baseline, margin, all_pairs=all_pairs)]
        list(whole)  # nobody has the baseline, perhaps
        return found
    if isinstance(a, RunDir) and isinstance(b, RunDir):
        return _made_apart(a, b, baseline, margin, read)
    second = {run.scenario(): run for run in reversed(_runs(b))}
    pairs = [(run, second[run.scenario()]) for run in _runs(a) if run.scenario() in second]
    if not pairs:
        raise NothingShared(f"{a.name} and {b.name} have no scenario in common")
    return [one for x, y in pairs for one in _made_apart(x, y, baseline, margin, read)]


def compare_classes(
    part: Part, baseline: str | None, margin: float, *, all_pairs: bool = False
) -> list[RunComparison]:
    """The engines of a run by traffic class, if it has several; one that has no request of a class is not in
    its comparison."""
    return [
        _of_part(one, baseline if baseline in one.sides else None, margin, all_pairs)
        for one in part.classes.values()
    ]


def _made_apart(
    a: RunDir, b: RunDir, baseline: str | None, margin: float, read: Reader
) -> list[RunComparison]:
    """Two runs, and the traffic classes that both have."""
    before, after = read(a), read(b)
    return [
        _of_parts(before, after, baseline, margin),
        *(
            _of_parts(one, after.classes[name], baseline, margin)
            for name, one in before.classes.items()
            if name in after.classes
        ),
    ]


def compare_each(
    runs: Sequence[RunDir],
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    margin: float = MARGIN,
    read: Reader,
) -> Iterator[RunComparison]:
    """The engines of every run. One that lacks the `baseline` (an engine that dropped out of a sweep) is
    compared with its own first; raises StoreError if none of them has it."""
    names: dict[str, None] = {}
    for run in runs:
        own = dict.fromkeys(read(run).sides)
        names |= own
        held = baseline if baseline in own else None
        yield compare_run(run, baseline=held, all_pairs=all_pairs, margin=margin, read=read)
    if runs and baseline is not None and baseline not in names:
        raise StoreError(f"there is no engine {baseline!r} here; there are {', '.join(names) or 'none'}")


def compare_run(
    run: RunDir,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    margin: float = MARGIN,
    look: Look | None = None,
    read: Reader | None = None,
) -> RunComparison:
    """The engines of one run against the `baseline`, else against the first; with `all_pairs` each against
    each. Raises StoreError."""
    return _of_part((read or Reader(look))(run), baseline, margin, all_pairs)


def _of_part(part: Part, baseline: str | None, margin: float, all_pairs: bool = False) -> RunComparison:
    names = list(part.sides)
    if baseline is not None and baseline not in names:
        raise StoreError(f"{part.name} has no engine {baseline!r}; it has {', '.join(names) or 'none'}")
    first = baseline or next(iter(names), "")
    found = compare_engines(
        list(part.sides.values()),
        baseline=baseline,
        all_pairs=all_pairs,
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
        notes=_unequal_turns(part.figures),
        infos=part.infos,
        seen=part.seen,
        cannot_exclude=_varied(part),
    )


def compare_runs(
    a: RunDir,
    b: RunDir,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    look: Look | None = None,
    read: Reader | None = None,
) -> RunComparison:
    """Engines of two runs made apart; raises StoreError.

    Engines that both have are compared with themselves, the first run's as the baseline, and so are the two
    that are left over if each run has one. Where nothing is shared, or a `baseline` is named, every engine of
    the other run is compared with the baseline: by default the first engine of `a`.
    """
    read = read or Reader(look)
    return _of_parts(read(a), read(b), baseline, margin)


def _of_parts(a: Part, b: Part, baseline: str | None, margin: float) -> RunComparison:
    before, after = _called_apart(a, b)
    named = _pairs(before, after, baseline)
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
        cannot_exclude=[*pairing.cannot_exclude, *dict.fromkeys(_varied(before) + _varied(after))],
        differences=[asdict(d) for d in differences(before.manifest, after.manifest, held)],
        notes=_unequal_turns({name: of for name, of in figures.items() if name in engines})
        if pairing.kind == BY_PROMPT
        else [],
        infos={name: info for name, info in (before.infos | after.infos).items() if name in engines},
        seen={name: saw for name, saw in (before.seen | after.seen).items() if name in engines},
    )


def _varied(part: Part) -> list[str]:
    if not any(figures.get("levels") for figures in part.figures.values()):
        return []
    return [
        "the number of users varied within turns: a quicker engine answered more of its requests under the "
        "highest load, so times of requests are not compared (loadgen summary and report have them by users)"
    ]


def _called_apart(a: Part, b: Part) -> tuple[Part, Part]:
    """Both with `NAME (A)` and `NAME (B)` for an engine that both have."""
    shared = a.sides.keys() & b.sides.keys()
    return (
        a.renamed({name: f"{name} (A)" if name in shared else name for name in a.sides}),
        b.renamed({name: f"{name} (B)" if name in shared else name for name in b.sides}),
    )


_Engine = tuple[Part, str]


def _pairs(before: Part, after: Part, baseline: str | None) -> list[tuple[_Engine, _Engine]]:
    """(engine, its baseline), each with its run."""
    if baseline is None:
        shared = [name for name in before.names if name in after.names]
        left = [[name for name in part.names if name not in shared] for part in (after, before)]
        if len(left[0]) == len(left[1]) == 1 or (not shared and left[1]):
            return [((after, n), (before, n)) for n in shared] + [
                ((after, name), (before, left[1][0])) for name in left[0]
            ]
        return [((after, n), (before, n)) for n in shared]
    for here, there, mark in ((before, after, "A"), (after, before, "B")):
        for name in (baseline, baseline.removesuffix(f" ({mark})")):
            if name in here.names:
                return [((there, other), (here, name)) for other in there.names]
    names = ", ".join(dict.fromkeys([*before.names, *after.names])) or "none"
    raise StoreError(f"neither run has an engine {baseline!r}; they have {names}")


def _runs(target: RunDir | Suite) -> list[RunDir]:
    return target.runs() if isinstance(target, Suite) else [target]


def _unequal_turns(figures: Mapping[str, dict[str, Any]]) -> list[str]:
    """Of a run that was cut, an engine may have complete turns in blocks that another has not."""
    turns = {name: of["window"]["turns_complete"] for name, of in figures.items()}
    if len(set(turns.values())) < 2:
        return []
    numbers = ", ".join(f"{name} {n}" for name, n in turns.items())
    return [
        f"complete turns: {numbers}; an engine's figures are from all of its own, ratios and answers from "
        "the blocks that both have, so a ratio need not be that of the two figures beside it"
    ]


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
