"""Every engine of a run against another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadgen.compare.blocks import EngineBlocks
from loadgen.compare.figures import FIGURES, Figure
from loadgen.compare.ratios import MARGIN, Ratio, paired_ratio
from loadgen.compare.verdict import BETTER, Decision, decide, sentence


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of an engine, against that of the baseline engine."""

    figure: Figure
    engine: str
    baseline: str
    ratio: Ratio
    decision: Decision
    margin: float = MARGIN

    @property
    def better(self) -> str:
        """The better engine's name, else the answer ("no difference", "not decidable")."""
        if self.decision.answer != BETTER:
            return self.decision.answer
        return self.engine if self.decision.higher == self.figure.higher_is_better else self.baseline

    @property
    def sentence(self) -> str:
        return sentence(self.figure, self.engine, self.baseline, self.ratio, self.decision, self.margin)


def compare_engines(
    engines: Mapping[str, EngineBlocks], *, baseline: str | None = None, margin: float = MARGIN
) -> dict[tuple[str, str], Comparison]:
    """By engine and figure, for engines that share one. The baseline is compared with the first other engine.

    Without a `baseline` it is the first engine. A run of one engine compares nothing.
    """
    names = list(engines)
    if len(names) < 2:
        return {}
    first = baseline or names[0]
    other = next(n for n in names if n != first)
    out = {}
    for name in names:
        against = other if name == first else first
        for figure in FIGURES:
            mine, theirs = engines[name].get(figure.name), engines[against].get(figure.name)
            if mine is None and theirs is None:
                continue
            ratio = paired_ratio(mine or {}, theirs or {})
            out[name, figure.name] = Comparison(figure, name, against, ratio, decide(ratio, margin), margin)
    return out
