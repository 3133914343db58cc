"""What a ratio allows to say: one engine is better, there is no difference, or it can't be decided.

A difference is claimed only if the whole interval lies beyond a margin that was fixed beforehand, and denied
only if the whole interval lies within it. A difference that is real and smaller than the margin is thus no
difference: nobody would choose an engine by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loadgen.compare.figures import Figure
from loadgen.compare.ratios import CONFIDENCE, MARGIN, MIN_BLOCKS, Ratio, half_width

BETTER = "better"
NO_DIFFERENCE = "no difference"
NOT_DECIDABLE = "not decidable"
MOST_BLOCKS = 1000


@dataclass(frozen=True, slots=True)
class Decision:
    """`answer` is BETTER, NO_DIFFERENCE or NOT_DECIDABLE; `higher`: the values are beyond the baseline's, of
    a BETTER alone. `needed` is the number of blocks with which a NOT_DECIDABLE might be decided, if they are
    like those there are; None if more than MOST_BLOCKS. `why` is the reason of a NOT_DECIDABLE that has
    nothing to do with the interval."""

    answer: str
    higher: bool | None = None
    needed: int | None = None
    why: str = ""


def decide(ratio: Ratio, margin: float = MARGIN) -> Decision:
    """What an interval says about a margin (1.05: 5 %). Raises ValueError unless the margin is above 1."""
    if margin <= 1:
        raise ValueError("the margin of a claim is a factor above 1")
    if ratio.low is None or ratio.high is None:
        return Decision(NOT_DECIDABLE, needed=max(MIN_BLOCKS, ratio.blocks + 1))
    if ratio.low > margin:
        return Decision(BETTER, higher=True)
    if ratio.high < 1 / margin:
        return Decision(BETTER, higher=False)
    if ratio.low >= 1 / margin and ratio.high <= margin:
        return Decision(NO_DIFFERENCE)
    return Decision(NOT_DECIDABLE, needed=blocks_needed(ratio, margin))


def blocks_needed(ratio: Ratio, margin: float = MARGIN, confidence: float = CONFIDENCE) -> int | None:
    """The fewest blocks whose interval would stay on one side of the margin, mean and spread unchanged."""
    assert ratio.ratio is not None
    assert ratio.spread is not None
    spread, now = ratio.spread, ratio.blocks
    freedom = now - 1 if ratio.freedom is None else ratio.freedom
    room = abs(abs(math.log(ratio.ratio)) - math.log(margin))

    def enough(blocks: int) -> bool:
        return half_width(spread, blocks, confidence, freedom * (blocks - 1) / (now - 1)) <= room

    most, short = MOST_BLOCKS, now
    if not enough(most):
        return None
    while most - short > 1:  # the half width falls with the number of blocks
        middle = (most + short) // 2
        if enough(middle):
            most = middle
        else:
            short = middle
    return most


def sentence(
    figure: Figure,
    engine: str,
    baseline: str,
    ratio: Ratio,
    decision: Decision,
    margin: float = MARGIN,
    claims: int = 1,
) -> str:
    """The verdict in one sentence, with what it rests on.

    >>> from loadgen.compare.figures import FIGURES
    >>> ttft = FIGURES[0]
    >>> sentence(ttft, "vllm", "llamacpp", Ratio(8, 0.5, 0.45, 0.56, 0.1), Decision(BETTER, higher=False))
    'vllm has the lower TTFT: vllm / llamacpp 0.500 (95 % interval 0.450 to 0.560, 8 blocks)'
    """
    blocks = f"{ratio.blocks} block{'' if ratio.blocks == 1 else 's'}"
    if decision.why:
        return f"not decidable: {decision.why}"
    if ratio.ratio is None:
        return f"not decidable: no complete block has {figure.title} of both {engine} and {baseline}"
    if ratio.low is None or ratio.high is None:
        return f"not decidable: an interval needs {decision.needed} complete blocks, there are {ratio.blocks}"
    measured = (
        f"{engine} / {baseline} {_factor(ratio.ratio)} ({CONFIDENCE * 100:.0f} % interval "
        f"{_factor(ratio.low)} to {_factor(ratio.high)}, {blocks})"
    )
    if decision.answer == BETTER:
        winner = engine if decision.higher == figure.higher_is_better else baseline
        side = "higher" if figure.higher_is_better else "lower"
        return f"{winner} has the {side} {figure.title}: {measured}"
    percent = f"{(margin - 1) * 100:.3g} %"
    if decision.answer == NO_DIFFERENCE:
        return f"no difference in {figure.title} larger than {percent}: {measured}"
    more = (
        f"about {decision.needed} blocks might decide"
        if decision.needed
        else f"more than {MOST_BLOCKS:,} blocks would be needed"
    )
    if decide(ratio, margin).answer != NOT_DECIDABLE:
        return f"not decidable: {measured} would do by itself, but not as one of {claims} claims; {more}"
    return f"not decidable: {measured} reaches across the margin of {percent}; {more}"


def _factor(value: float) -> str:
    """Three significant digits of a factor, as they are read: 0.512, 1.04, 12.3."""
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"
