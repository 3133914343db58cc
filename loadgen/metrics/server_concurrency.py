"""The requests that a server itself says it has, running and waiting: a check of our own concurrency.

Mean over a turn = the mean of the samples of `running + waiting` that lie inside it, since they come at an
even beat; over several turns, the means weighted by the turns' lengths. It is seen from inside the server, at
the moments of the scrapes only: network, HTTP and a gateway's queue are not in it, and `error`, its standard
error (the samples' standard deviation / the root of their number), says how much chance is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loadgen.metrics.turns import Turn

ENOUGH = 10
TOLERANCE = 0.1
_SIGMAS = 4.0


@dataclass(frozen=True, slots=True)
class Gauge:
    """Samples of one engine: `t_ns` wall nanoseconds, `requests` running + waiting at that time."""

    t_ns: NDArray[np.int64]
    requests: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Gauge:
        """From rows of engine.jsonl; those without both numbers are passed over."""
        points = [
            (row["t_ns"], float(row["running"]) + float(row["waiting"]))
            for row in rows
            if isinstance(row.get("t_ns"), int)
            and isinstance(row.get("running"), (int, float))
            and isinstance(row.get("waiting"), (int, float))
        ]
        return cls(
            np.array([t for t, _ in points], dtype=np.int64),
            np.array([n for _, n in points], dtype=np.float64),
        )


@dataclass(frozen=True, slots=True)
class ServerConcurrency:
    """`mean` requests in the server over `samples` scrapes; `error` its standard error."""

    mean: float
    error: float
    samples: int

    def contradicts(self, ours: float) -> bool:
        """Whether the two differ by more than a tenth and more than chance explains. Never with fewer than
        10 samples, and never by less than half a request."""
        return self.samples >= ENOUGH and abs(self.mean - ours) > max(
            0.5, TOLERANCE * ours + _SIGMAS * self.error
        )


def server_concurrency(gauge: Gauge, turns: Sequence[Turn]) -> ServerConcurrency | None:
    """Over these turns; None if no sample lies in any of them. Turns in which the wall clock was set are left
    out: samples cannot be placed in them."""
    weights, means, variances, samples = [], [], [], 0
    for turn in turns:
        inside = gauge.requests[(gauge.t_ns >= turn.start_ns) & (gauge.t_ns <= turn.end_ns)]
        if turn.clock_stepped or not len(inside) or turn.seconds <= 0:
            continue
        weights.append(turn.seconds)
        means.append(float(inside.mean()))
        variances.append(float(inside.var()) / len(inside))
        samples += len(inside)
    if not samples:
        return None
    total = math.fsum(weights)
    mean = math.fsum(w * m for w, m in zip(weights, means, strict=True)) / total
    error = math.sqrt(math.fsum(w * w * v for w, v in zip(weights, variances, strict=True))) / total
    return ServerConcurrency(mean, error, samples)
