"""blocks: are there enough of them to tell engines apart?"""

from __future__ import annotations

from loadgen.compare.ratios import MIN_BLOCKS
from loadgen.report.plain import plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """A note, of runs with several engines: each one's figures stand, but no difference between them can be
    claimed. A block counts if every engine completed its turn of it."""
    if len(run.engines) < 2:
        return []
    complete = [
        {t["block"] for t in figures["window"]["turns"] if t["complete"]} for figures in run.engines.values()
    ]
    blocks = len(set.intersection(*complete))
    if blocks >= MIN_BLOCKS:
        return []
    return [
        Finding(
            "blocks",
            Level.VALID,
            f"{plural(blocks, 'complete block')}: too few to decide between engines",
            f"run {MIN_BLOCKS} blocks or more",
        )
    ]
