"""Which engine is measured when: ABBA BAAB.

A machine drifts: it warms up, its clocks sink, a neighbour wakes. Taking turns in an order that is
mirrored from block to block lets a steady drift fall on all engines alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """One engine's N prompts of one block; `index` numbers the turns of a run from 0, `block` the blocks."""

    index: int
    block: int
    engine: str


def turn_order(engines: Sequence[str], blocks: int) -> list[Turn]:
    """All turns of a run, each block holding every engine once.

    Two engines go ABBA BAAB ABBA ...; one has no order; more go in the given order, then its reverse, and
    so on. `engines` must be distinct names.

    >>> "".join(t.engine for t in turn_order("AB", 4))
    'ABBABAAB'
    >>> "".join(t.engine for t in turn_order("ABC", 3))
    'ABCCBAABC'
    """
    mirrored = (False, True, True, False) if len(engines) == 2 else (False, True)
    turns: list[Turn] = []
    for block in range(blocks):
        order = reversed(engines) if mirrored[block % len(mirrored)] else engines
        for engine in order:
            turns.append(Turn(len(turns), block, engine))
    return turns
