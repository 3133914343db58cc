"""How much do the figures of real runs move, and what with? The parts that intervals.py makes runs of.

    python benchmarks/noise.py [RUN...] [--json]

Takes runs of two engines, or recordings as in benchmarks/recordings (without either: the one of an H200 that
is there), and prints for each figure, as standard deviations of natural logarithms:

- ratio: of the blocks' ratios, which is all that an interval sees;
- block: what both engines of a block share (the covariance of their turns);
- turn: what a turn has beside that and beside its waves;
- place: what the first, second, ... wave of every turn has in common. It is the same in each turn, so no
  mean of a turn moves with it;
- wave: what is left between the waves of a turn, each of as many requests as there were users;
- own: between the requests of a wave.

Place, wave and own are those of the first and of the second engine, by an analysis of variance with turns
and places as factors; what comes out below 0 is 0. `freedom` are the degrees of freedom of a wave's variance
of each engine: with 15, the 95 % interval of a standard deviation goes from 0.74 to 1.55 times of it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from loadgen.metrics.columns import Floats
from loadgen.record import OK
from loadgen.report.load import EngineData, load_run
from loadgen.store import RunDir

RECORDED = Path(__file__).parent / "recordings" / "h200_16_users.json"
FIGURES = ("ttft_ms", "tpot_ms", "e2e_ms")

Turns = Sequence[Sequence[Floats]]  # of an engine: turns, waves, the logarithm of each request's figure


@dataclass(frozen=True)
class Parts:
    """Standard deviations of natural logarithms, from `blocks` turns of each engine with `waves` waves."""

    blocks: int
    waves: int
    freedom: int
    ratio: float
    block: float
    turn: float
    place: tuple[float, float]
    wave: tuple[float, float]
    own: tuple[float, float]


def parts(a: Turns, b: Turns) -> Parts:
    """Of two engines' turns, block by block. Waves that not every turn has are left out. Raises ValueError
    with fewer than two blocks of two waves."""
    blocks, count = min(len(a), len(b)), min((len(turn) for turn in (*a, *b)), default=0)
    if blocks < 2 or count < 2:
        raise ValueError(f"{blocks} blocks of {count} waves can't be taken apart")
    freedom = (blocks - 1) * (count - 1)
    turn_means, own, wave, place, inner = [], [], [], [], []
    for engine in (a, b):
        waves = [[turn[w] for w in range(count)] for turn in engine[:blocks]]
        mean = np.array([[w.mean() for w in turn] for turn in waves])
        inside = float(np.mean([w.var(ddof=1) if len(w) > 1 else 0.0 for turn in waves for w in turn]))
        chance = inside * float(np.mean([1 / len(w) for turn in waves for w in turn]))
        rest = mean - mean.mean(axis=0) - mean.mean(axis=1, keepdims=True) + mean.mean()
        left = float((rest**2).sum()) / freedom
        own.append(inside)
        wave.append(max(left - chance, 0.0))
        place.append(max(float(mean.mean(axis=0).var(ddof=1)) - left / blocks, 0.0))
        inner.append(left / count)
        turn_means.append(mean.mean(axis=1))
    shared = float(np.cov(*turn_means)[0, 1])
    whole = float(np.mean([of.var(ddof=1) for of in turn_means]))
    ratio = float((turn_means[1] - turn_means[0]).std(ddof=1))
    turn = whole - shared - float(np.mean(inner))
    return Parts(
        blocks,
        count,
        freedom,
        ratio,
        _root(shared),
        _root(turn),
        *((_root(x), _root(y)) for x, y in (place, wave, own)),
    )


def _root(variance: float) -> float:
    return math.sqrt(max(variance, 0.0))


def of_run(engine: EngineData, figure: str, users: int) -> Turns:
    """The complete turns' successful requests as they were sent, as many to a wave as there are users."""
    columns = engine.columns
    out = []
    for turn in engine.turns:
        rows = columns.of_turn(turn.turn)
        rows = rows[(columns.word["outcome"][rows] == OK) & (columns.number[figure][rows] > 0)]
        rows = rows[np.argsort(columns.whole["sent_ns"][rows], kind="stable")]
        logs = np.log(columns.number[figure][rows])
        if turn.complete:
            out.append([logs[k : k + users] for k in range(0, len(logs) // users * users, users)])
    return out


def read(path: Path) -> dict[str, list[Turns]]:
    """By figure, the turns of the first two engines of a run's directory or of a recording."""
    if path.is_file():
        engines = list(json.loads(path.read_text())["engines"].values())[:2]
        return {
            figure: [[[np.log(np.array(w)[:, k]) for w in turn] for turn in turns] for turns in engines]
            for k, figure in enumerate(FIGURES)
        }
    data = load_run(RunDir.open(path))
    users = int((data.manifest.settings if data.manifest else {}).get("users") or 1)
    return {figure: [of_run(e, figure, users) for e in list(data.engines.values())[:2]] for figure in FIGURES}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="*", type=Path, default=[RECORDED])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = {path.name: {f: asdict(parts(*sides)) for f, sides in read(path).items()} for path in args.run}
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, figures in found.items():
        for figure, of in figures.items():
            print(f"{name} {figure}: {of['blocks']} blocks of {of['waves']} waves, freedom {of['freedom']}")
            print("  ratio {ratio:.3f}  block {block:.3f}  turn {turn:.3f}".format(**of), end="")
            print("".join("  {} {:.3f} and {:.3f}".format(k, *of[k]) for k in ("place", "wave", "own")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
