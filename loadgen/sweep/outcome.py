"""What a sweep has found of one engine: in numbers for sweep.json, in sentences for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.plain import clean, number
from loadgen.sweep.curve import Edge, knee, slo_edge
from loadgen.sweep.names import RATE, load_words, shown
from loadgen.sweep.plan import Plan, Stop, stopped
from loadgen.sweep.point import NOT_MET, UNDECIDED, Point

Figures = Mapping[float, Mapping[str, Any]]  # an engine's figures by load


def outcome(plan: Plan, points: Sequence[Point]) -> dict[str, Any]:
    """{"stopped", "best", "knee", "slo"}: why the load was not raised any further (None: it goes on), the
    load with the highest throughput, the knee (None: throughput still rises), and the SLO's edge (None
    without one)."""
    why = stopped(plan, points)
    best = max((p for p in points if p.usable), key=lambda p: p.throughput or 0.0, default=None)
    found = knee(points, plan.margin)
    edge = slo_edge(points) if plan.slo else None
    return {
        "stopped": why.value if why else None,
        "best": {"load": best.load, "throughput_tokens_per_s": best.throughput} if best else None,
        "knee": {"load": found.load, "below": found.below, "throughput_tokens_per_s": found.throughput}
        if found
        else None,
        "slo": {"within": edge.within, "broken": edge.broken} if edge else None,
    }


def sentences(name: str, plan: Plan, points: Sequence[Point], figures: Figures, slo: str = "") -> list[str]:
    """What a person should know of an engine: its SLO first, then its knee. `slo` is the SLO as it was
    asked for."""
    name = clean(name)
    if not any(p.usable for p in points):
        return [f"{name}: nothing can be said, no step gave figures that can be used{_reason(figures)}"]
    out = [f"{name}: {_slo(plan, points, figures, slo)}"] if plan.slo else []
    return [*out, f"{name}: {_knee(plan, points, figures)}"]


def _slo(plan: Plan, points: Sequence[Point], figures: Figures, slo: str) -> str:
    edge = slo_edge(points)
    why = ""
    if edge.broken is not None:
        broken = figures[edge.broken]
        reasons = broken.get("slo_sentences") or []
        why = f"{_load(plan, edge.broken)} {'break' if edge.broken > 1 else 'breaks'} it"
        if reasons and broken.get("slo") == NOT_MET:
            why += f" ({clean('; '.join(reasons), 200)})"
        elif broken["failed"]:
            why += f" ({_failed(broken)})"
    parts = [why] if why else []
    open_ = sorted(p.load for p in points if _undecided_beyond(p, edge))
    if open_:
        example = clean("; ".join(figures[open_[0]].get("slo_sentences") or []), 200)
        loads = ", ".join([*map(shown, open_[:-1]), _load(plan, open_[-1])])
        parts.append(f"not decidable with {loads}{f' ({example})' if example else ''}")
    if edge.within is not None:
        rate = number(figures[edge.within]["throughput_tokens_per_s"])
        found = f"the highest load within {slo} is {_load(plan, edge.within)} ({rate} tok/s)"
        return "; ".join([found, *(parts or ["more were not measured"])])
    return f"no load is known to be within {slo}: {'; '.join(parts)}"


def _undecided_beyond(point: Point, edge: Edge) -> bool:
    """Whether more might be within the SLO than is known, at this load."""
    return (
        point.slo == UNDECIDED
        and not point.failing
        and point.load > (edge.within or 0)
        and (edge.broken is None or point.load < edge.broken)
    )


def _knee(plan: Plan, points: Sequence[Point], figures: Figures) -> str:
    best = max((p for p in points if p.usable), key=lambda p: p.throughput or 0.0)
    most = f"{number(best.throughput)} tok/s at {_load(plan, best.load)}"
    if found := knee(points, plan.margin):
        share = f"{(plan.margin - 1) * 100:.3g} %"
        where = f"knee at {_load(plan, found.load)} ({number(found.throughput)} tok/s"
        where += ")" if found.load == best.load else f"; the most is {most})"
        more, fewer = "more users give", "fewer"
        if plan.variable == RATE:
            more, fewer = "a higher rate gives", "lower ones"
        return f"{where}: {more} {share} more at most" + (
            f", {shown(found.below)} give less" if found.below else f", {fewer} were not measured"
        )
    why = stopped(plan, points)
    if why is Stop.FAILING:
        last = max(p.load for p in points if p.failing)
        return (
            f"no knee: requests fail at {_load(plan, last)} ({_failed(figures[last])}); the most was {most}"
        )
    if why is Stop.UNBELIEVED:
        return f"no knee: two steps in a row cannot be believed{_reason(figures)}; the most was {most}"
    if why is Stop.SLO:
        return f"no knee: throughput still rose when the SLO broke; the most was {most}"
    end = max((p for p in points if p.usable), key=lambda p: p.load)
    if (best.throughput or 0.0) > plan.margin * (end.throughput or 0.0):
        less = f"{number(end.throughput)} tok/s at {_load(plan, end.load)}"
        return f"no knee yet: the last step gave less ({less}), one decides nothing; the most was {most}"
    return f"no knee yet: throughput still rises, {most} is the most so far"


def _reason(figures: Figures) -> str:
    """Why the last step that can't be used can't be."""
    for _, one in sorted(figures.items(), reverse=True):
        if one["validity"] == "void" and one["findings"]:
            return f" ({clean(one['findings'][0]['evidence'], 200)})"
    return ""


def _failed(figures: Mapping[str, Any]) -> str:
    kinds = ", ".join(clean(k, 40) for k in figures["failed_by_kind"])
    return f"{figures['failed']:,} of {figures['requests']:,} requests failed: {kinds}"


def _load(plan: Plan, load: float) -> str:
    return load_words(load, plan.variable)
