"""What a curve of throughput over load shows: its knee, and the highest load within an SLO.

Both are of measured loads; nothing is interpolated, so each comes with the load on its other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadgen.sweep.point import MET, NOT_MET, Point


def flat(points: Sequence[Point], margin: float) -> bool:
    """Whether throughput has stopped rising: beyond some load there are two measured loads or more, the
    highest at least twice as high, and the best of them is not better by the margin (a factor) than the best
    up to there. One step that happens to be slow ends nothing, and close steps are not taken for a plateau.

    >>> flat([Point(8, 100.0), Point(16, 103.0), Point(32, 104.0)], 1.05)
    True
    >>> flat([Point(8, 100.0), Point(9, 102.0), Point(10, 104.0)], 1.05)
    False
    """
    known = _known(points)
    for at in range(len(known) - 2):
        if known[-1].load >= 2 * known[at].load:
            before, beyond = known[: at + 1], known[at + 1 :]
            if _best(beyond) < margin * _best(before):
                return True
    return False


@dataclass(frozen=True, slots=True)
class Knee:
    """`load` is the lowest measured load whose throughput is within the margin of the best; what is beyond
    that mostly waits. `below` is the measured load beneath, which was not; None if there is none."""

    load: float
    below: float | None
    throughput: float


def knee(points: Sequence[Point], margin: float) -> Knee | None:
    """None as long as throughput still rises: then its best is yet to be seen."""
    if not flat(points, margin):
        return None
    known = _known(points)
    best = _best(known)
    at = next(i for i, p in enumerate(known) if _throughput(p) * margin >= best)
    return Knee(known[at].load, known[at - 1].load if at else None, _throughput(known[at]))


@dataclass(frozen=True, slots=True)
class Edge:
    """`within` is the highest load that meets the SLO beneath the lowest that does not, `broken`. None where
    no load was found to be so."""

    within: float | None
    broken: float | None


def slo_edge(points: Sequence[Point]) -> Edge:
    """Loads at which the SLO could not be decided are on neither side."""
    broken = min((p.load for p in points if p.slo == NOT_MET or p.failing), default=None)
    within = max(
        (p.load for p in points if p.slo == MET and (broken is None or p.load < broken)), default=None
    )
    return Edge(within, broken)


def _known(points: Sequence[Point]) -> list[Point]:
    return sorted((p for p in points if p.usable), key=lambda p: p.load)


def _throughput(point: Point) -> float:
    assert point.throughput is not None
    return point.throughput


def _best(points: Sequence[Point]) -> float:
    return max(_throughput(p) for p in points)
