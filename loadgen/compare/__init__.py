"""Which engine is better, and by how much: ratios paired by block, their intervals, verdicts."""

from loadgen.compare.blocks import EngineBlocks, engine_blocks
from loadgen.compare.engines import Comparison, Side, compare_engines, compare_pairs
from loadgen.compare.figures import FIGURES, HEADLINE, Figure
from loadgen.compare.ratios import CONFIDENCE, MARGIN, MIN_BLOCKS, Ratio, paired_ratio, unpaired_ratio
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE, Decision, decide

__all__ = [
    "BETTER",
    "CONFIDENCE",
    "FIGURES",
    "HEADLINE",
    "MARGIN",
    "MIN_BLOCKS",
    "NOT_DECIDABLE",
    "NO_DIFFERENCE",
    "Comparison",
    "Decision",
    "EngineBlocks",
    "Figure",
    "Ratio",
    "Side",
    "compare_engines",
    "compare_pairs",
    "decide",
    "engine_blocks",
    "paired_ratio",
    "unpaired_ratio",
]
