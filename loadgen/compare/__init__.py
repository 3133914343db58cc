"""Which engine is better, and by how much: ratios paired by block, their intervals, verdicts."""

from loadgen.compare.blocks import EngineBlocks, engine_blocks
from loadgen.compare.engines import Comparison, compare_engines
from loadgen.compare.figures import FIGURES, Figure
from loadgen.compare.ratios import MARGIN, MIN_BLOCKS, Ratio, paired_ratio
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE, Decision, decide

__all__ = [
    "BETTER",
    "FIGURES",
    "MARGIN",
    "MIN_BLOCKS",
    "NOT_DECIDABLE",
    "NO_DIFFERENCE",
    "Comparison",
    "Decision",
    "EngineBlocks",
    "Figure",
    "Ratio",
    "compare_engines",
    "decide",
    "engine_blocks",
    "paired_ratio",
]
