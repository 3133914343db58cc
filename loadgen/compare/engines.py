"""Every engine against the baseline, in every figure: ratios, and what may be claimed of them all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from loadgen.compare.blocks import EngineBlocks, engine_blocks
from loadgen.compare.bootstrap import paired_percentiles, unpaired_percentiles
from loadgen.compare.family import holm, p_value
from loadgen.compare.figures import FIGURES, HEADLINE, OF_REQUESTS, Figure
from loadgen.compare.ratios import CONFIDENCE, MARGIN, MIN_BLOCKS, Ratio, paired_ratio, unpaired_ratio
from loadgen.compare.samples import BlockSamples, engine_samples
from loadgen.compare.verdict import BETTER, NOT_DECIDABLE, Decision, blocks_needed, decide, sentence
from loadgen.metrics.percentiles import PERCENTILES
from loadgen.report.load import EngineData

MEAN = "mean"
VALUE = "value"
BEYOND = 10  # samples that must lie beyond a percentile before anything is claimed of it: p99 takes 1,000


@dataclass(frozen=True)
class Side:
    """One engine's part in a comparison: its blocks' values and samples, by figure."""

    name: str
    values: EngineBlocks
    samples: BlockSamples = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, engine: EngineData) -> Side:
        side = cls(name, engine_blocks(engine), engine_samples(engine))
        return side.of_turns() if engine.stretches else side

    def of_turns(self) -> Side:
        """Without what requests have. Where users varied within turns, a quicker engine answers more of them
        under the highest load: its requests are others, and only what whole turns have compares."""
        own = {f.name for f in OF_REQUESTS}
        return replace(
            self, values={name: of for name, of in self.values.items() if name not in own}, samples={}
        )

    def of_requests(self) -> Side:
        """Without what a whole turn has. Of one traffic class, throughput says nothing: its share of the
        requests is given, so it is as much more or less as that of all of them."""
        own = {f.name for f in OF_REQUESTS}
        return replace(self, values={name: of for name, of in self.values.items() if name in own})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of an engine, against that of the baseline engine. `statistic` is MEAN, p50, p95, p99, or
    VALUE of a figure that a turn has. `p` and `p_adjusted` are those of loadgen.compare.family, where
    `claims` is the size of the family. `rough`: the percentile has too few samples for any claim."""

    figure: Figure
    statistic: str
    engine: str
    baseline: str
    ratio: Ratio
    decision: Decision
    method: str
    margin: float = MARGIN
    p: float | None = None
    p_adjusted: float | None = None
    claims: int = 1
    rough: bool = False
    simulated: tuple[str, ...] = ()

    @property
    def headline(self) -> bool:
        return self.figure.name in HEADLINE and self.statistic in (MEAN, VALUE)

    @property
    def better(self) -> str:
        """The better engine's name, else the answer ("no difference", "not decidable")."""
        if self.decision.answer != BETTER:
            return self.decision.answer
        return self.engine if self.decision.higher == self.figure.higher_is_better else self.baseline

    @property
    def sentence(self) -> str:
        figure = self.figure
        if self.statistic not in (MEAN, VALUE):
            figure = replace(figure, title=f"{self.statistic} {figure.title}")
        text = sentence(
            figure, self.engine, self.baseline, self.ratio, self.decision, self.margin, self.claims
        )
        some = [n for n in (self.engine, self.baseline) if n in self.simulated]
        return f"{text} (simulated: {', '.join(some)})" if some else text

    def inverse(self) -> Comparison:
        """The baseline against the engine."""
        higher = None if self.decision.higher is None else not self.decision.higher
        return replace(
            self,
            engine=self.baseline,
            baseline=self.engine,
            ratio=self.ratio.inverse(),
            decision=replace(self.decision, higher=higher),
        )


def compare_engines(
    sides: Sequence[Side],
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    margin: float = MARGIN,
    void: bool = False,
    simulated: Iterable[str] = (),
) -> list[Comparison]:
    """Every other engine of one run against the `baseline`, else against the first, in all figures that
    either has; with `all_pairs` then also the others against each other. A run of one engine compares
    nothing."""
    if not sides:
        return []
    first = next(s for s in sides if baseline in (None, s.name))
    ordered = [first, *(side for side in sides if side is not first)]
    bases = ordered if all_pairs else ordered[:1]
    pairs = [(side, base) for k, base in enumerate(bases) for side in ordered[k + 1 :]]
    return compare_pairs(pairs, margin=margin, void=void, simulated=simulated)


def compare_pairs(
    pairs: Iterable[tuple[Side, Side]],
    *,
    paired: bool = True,
    margin: float = MARGIN,
    void: bool = False,
    simulated: Iterable[str] = (),
) -> list[Comparison]:
    """(engine, baseline) by (engine, baseline), all claims corrected for each other. Not `paired`: blocks of
    the same number have nothing to do with each other. Where `void`, the ratios are there and decide nothing.
    """
    said = tuple(simulated)
    found = [
        replace(comparison, simulated=said)
        for mine, theirs in pairs
        for comparison in _ratios(mine, theirs, paired, margin)
    ]
    for headline in (True, False):
        family = [k for k, c in enumerate(found) if c.headline == headline]
        for k, corrected in zip(family, _corrected([found[k] for k in family]), strict=True):
            found[k] = corrected
    if void:
        decision = Decision(NOT_DECIDABLE, why="the run is void")
        found = [replace(c, decision=decision) for c in found]
    return found


def _ratios(mine: Side, theirs: Side, paired: bool, margin: float) -> Iterator[Comparison]:
    """Every figure and statistic, each decided by itself."""
    pairing = "paired blocks" if paired else "unpaired blocks"
    of_values = paired_ratio if paired else unpaired_ratio
    of_samples = paired_percentiles if paired else unpaired_percentiles
    for figure in FIGURES:
        values, base = mine.values.get(figure.name, {}), theirs.values.get(figure.name, {})
        if not values and not base:
            continue
        ratio = of_values(values, base)
        statistic, method = VALUE, f"{pairing}, {'t' if paired else 'Welch'}"
        if figure in OF_REQUESTS:
            statistic = MEAN
        names = (mine.name, theirs.name)
        yield Comparison(figure, statistic, *names, ratio, decide(ratio, margin), method, margin)
        samples, base_samples = mine.samples.get(figure.name, {}), theirs.samples.get(figure.name, {})
        if not samples or not base_samples:
            continue
        shared = samples.keys() & base_samples.keys()
        n, base_n = (sum(of[b].n for b in (shared if paired else of)) for of in (samples, base_samples))
        ratios = of_samples(samples, base_samples, PERCENTILES)
        for p, ratio in zip(PERCENTILES, ratios, strict=True):
            needs = round(BEYOND / (1 - p / 100))
            decision, rough = decide(ratio, margin), min(n, base_n) < needs
            if rough:
                ratio = Ratio(ratio.blocks, ratio.ratio)
                blocks = -(-needs * max(ratio.blocks, 1) // max(min(n, base_n), 1))
                why = f"p{p} needs {needs:,} samples of each engine, there are {n:,} and {base_n:,}"
                decision = Decision(NOT_DECIDABLE, needed=max(blocks, MIN_BLOCKS), why=why)
            yield Comparison(
                figure, f"p{p}", *names, ratio, decision, f"{pairing}, bootstrap", margin, rough=rough
            )


def _corrected(family: list[Comparison]) -> list[Comparison]:
    """The same comparisons with what may be said of all of them at once."""
    adjusted = holm([p_value(c.ratio, c.margin) for c in family])
    allowed = 1 - CONFIDENCE
    claims = sum(p is not None for p in adjusted)
    open_claims = sum(p is not None and p > allowed for p in adjusted)
    out = []
    for c, p in zip(family, adjusted, strict=True):
        decision = c.decision
        if p is not None and p > allowed:
            needed = blocks_needed(c.ratio, c.margin, 1 - allowed / open_claims)
            decision = Decision(NOT_DECIDABLE, needed=needed)
        out.append(replace(c, decision=decision, p=p_value(c.ratio, c.margin), p_adjusted=p, claims=claims))
    return out
