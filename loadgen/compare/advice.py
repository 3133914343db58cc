"""Which engine for which use: sentences, each with the rows that it rests on, and none without. Pure.

A row is one of a comparison's rows whose answer is decided, or an engine's `least_needed` memory. A use that
was not measured, or not decided, gets no advice; nor does a void run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loadgen.compare.outcome import SPLIT, Outcome, gain, reference
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import Row, RunComparison
from loadgen.compare.uses import GATEWAY, MEMORY, SINGLE, Use
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Advice:
    """`engine` is the one to take, None where either will do or both are meant. `because` are the rows:
    scenario, figure, statistic, engine, baseline."""

    use: str
    engine: str | None
    sentence: str
    because: list[dict[str, str]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def advise(
    comparisons: Sequence[RunComparison], found: Sequence[Outcome], margin: float = MARGIN
) -> list[Advice]:
    """All advice that the rows of these comparisons back; the outcomes are theirs."""
    out = []
    for engine, baseline in dict.fromkeys((o.engine, o.baseline) for o in found):
        own = [o for o in found if (o.engine, o.baseline) == (engine, baseline)]
        uses = [advice for o in own if (advice := _of_use(o, comparisons)) is not None]
        out += [*uses, *_of_memory(comparisons, engine, baseline, own, margin), *_of_gateway(uses, own)]
    return out


def _of_use(outcome: Outcome, comparisons: Sequence[RunComparison]) -> Advice | None:
    decided = [row for row in outcome.rows if row.answer in (BETTER, NO_DIFFERENCE)]
    rows = [reference(outcome.scenario, row) for row in decided]
    title = outcome.title
    if outcome.answer == BETTER and outcome.better:
        text = f"{title}: take {outcome.better}; {outcome.sentence}"
    elif outcome.answer == NO_DIFFERENCE:
        text = f"{title}: take either; {outcome.sentence}"
    elif outcome.answer == SPLIT:
        text = f"{title}: {outcome.sentence}"
        if crossing := _crossing(outcome, comparisons):
            text += f"; {crossing[0]}"
            rows += [reference(outcome.scenario, crossing[1])]
    else:
        return None
    return Advice(outcome.use.name, outcome.better, _with(text, outcome.caveat), rows)


def _crossing(outcome: Outcome, comparisons: Sequence[RunComparison]) -> tuple[str, Row] | None:
    """One engine answers first, the other writes faster: up to which length is the first one through sooner?
    (difference of TTFT) / (difference of TPOT) tokens after the first, the first one's time being TTFT."""
    rows = {row.figure: row for row in outcome.rows}
    ttft = rows.get("ttft_ms")
    of = next((c for c in comparisons if c.scenario == outcome.scenario), None)
    tpot = of.row(outcome.engine, "tpot_ms", baseline=outcome.baseline) if of else None
    if outcome.use.figures != SINGLE.figures or ttft is None or tpot is None or tpot.answer != BETTER:
        return None
    values = (ttft.value, ttft.baseline_value, tpot.value, tpot.baseline_value)
    if ttft.better in (None, tpot.better) or any(v is None for v in values):
        return None
    first, first_base, each, each_base = (float(v or 0.0) for v in values)
    if each == each_base:
        return None
    tokens = (first_base - first) / (each - each_base)
    if tokens < 1:
        return None
    return (
        f"answers of up to about {tokens + 1:,.0f} tokens are through sooner with {ttft.better}, "
        f"longer ones with {tpot.better}"
    ), tpot


def _of_memory(
    comparisons: Sequence[RunComparison],
    engine: str,
    baseline: str,
    found: Sequence[Outcome],
    margin: float,
) -> list[Advice]:
    """By the least that each engine would need, in the scenario that needs most."""
    needs = [
        (c.scenario, mine, theirs)
        for c in comparisons
        if (mine := least_needed(c, engine)) and (theirs := least_needed(c, baseline))
    ]
    if not needs:
        return []
    scenario, mine, theirs = max(needs, key=lambda n: max(n[1:]))
    rows = [
        {
            "scenario": scenario,
            "figure": "least_needed_bytes",
            "statistic": "value",
            "engine": e,
            "baseline": baseline,
        }
        for e in (engine, baseline)
    ]
    numbers = f"{engine} needs {mine / GIB:.1f} GiB at least, {baseline} {theirs / GIB:.1f} GiB ({scenario})"
    caveat = next((o.caveat for o in found if o.scenario == scenario), "")
    better = engine if mine * margin < theirs else baseline if theirs * margin < mine else None
    text = f"{MEMORY.title}: take {better or 'either'}; {numbers}"
    return [Advice(MEMORY.name, better, _with(text, caveat), rows)]


def least_needed(comparison: RunComparison, engine: str) -> int | None:
    memory: Mapping[str, Any] = comparison.parts.get("memory", {}).get(engine, {})
    value = memory.get("least_needed", {}).get("bytes")
    return value if isinstance(value, int) else None


def _of_gateway(uses: Sequence[Advice], found: Sequence[Outcome]) -> list[Advice]:
    """Where each engine is better at a use of its own, a gateway that routes by use has the best of both. One
    engine before and after a change is no such pair."""
    by_engine: dict[str, list[Advice]] = {}
    for advice in uses:
        if advice.engine:
            by_engine.setdefault(advice.engine, []).append(advice)
    if len(by_engine) < 2 or len({name.removesuffix(" (A)").removesuffix(" (B)") for name in by_engine}) < 2:
        return []
    titles = {o.use.name: o.title for o in found}
    routes = "; ".join(
        f"{engine} for {' and '.join(dict.fromkeys(titles[a.use] for a in own))}"
        for engine, own in by_engine.items()
    )
    caveat = "; ".join(dict.fromkeys(part for o in found for part in o.caveat.split("; ") if part))
    rows = [row for own in by_engine.values() for advice in own for row in advice.because]
    return [Advice(GATEWAY.name, None, _with(f"{GATEWAY.title}: {routes}", caveat), rows)]


def _with(text: str, caveat: str) -> str:
    return f"{text} ({caveat})" if caveat else text


__all__ = ["Advice", "Use", "advise", "gain", "least_needed"]
