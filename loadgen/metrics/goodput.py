"""Goodput: how many requests were good enough, by limits that a request must meet all at once.

    goodput       = good requests / requests that were measured
    goodput_per_s = good requests that ended inside the turns / length of the turns

A request is good if it succeeded and meets every limit; a failed one never is, a cancelled one counts nowhere
(Y. Zhong et al., "DistServe", OSDI 2024, call the first SLO attainment and the second goodput). A percentile
of TTFT and one of TPOT may each be met by other requests; goodput asks whether the same one met both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from loadgen.metrics.columns import Bools, Columns, Floats
from loadgen.record import CANCELLED, OK, WARMUP


def _decode_speed(columns: Columns) -> Floats:
    tpot = columns.number["tpot_ms"]
    speed: Floats = np.full(len(tpot), np.nan)
    np.divide(1000.0, tpot, out=speed, where=tpot > 0)
    return speed


# What a request has one value of, by its name in the summary.
VALUES: dict[str, Callable[[Columns], Floats]] = {
    "ttft_ms": lambda c: c.number["ttft_ms"],
    "first_event_ms": lambda c: c.number["first_event_ms"],
    "headers_ms": lambda c: c.number["headers_ms"],
    "ttfa_ms": lambda c: c.number["ttfa_ms"],
    "tpot_ms": lambda c: c.number["tpot_ms"],
    "decode_tokens_per_s": _decode_speed,
    "e2e_ms": lambda c: c.number["e2e_ms"],
    "scheduled_ttft_ms": lambda c: c.number["ttft_ms"] + c.scheduled_lag_ms,
    "scheduled_e2e_ms": lambda c: c.number["e2e_ms"] + c.scheduled_lag_ms,
}
# Answers of one token have none of these, and are not worse for it.
MAY_BE_MISSING = ("tpot_ms", "decode_tokens_per_s")


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound of one figure of a request: `most` is true of an upper bound; `reached` says whether the bound
    itself is still within."""

    figure: str
    most: bool
    bound: float
    reached: bool = False

    def met(self, values: Floats) -> Bools:
        """Elementwise; NaN meets no limit."""
        if self.most:
            out: Bools = values <= self.bound if self.reached else values < self.bound
        else:
            out = values >= self.bound if self.reached else values > self.bound
        return out


def asked(columns: Columns) -> Bools:
    """The requests that goodput is a share of: measured, and not cancelled."""
    out: Bools = (columns.word["phase"] != WARMUP) & (columns.word["outcome"] != CANCELLED)
    return out


def good(columns: Columns, limits: Iterable[Limit]) -> Bools:
    """Which requests succeeded and meet all limits, one bool a row. Raises KeyError of a figure that is not
    in VALUES."""
    out: Bools = asked(columns) & (columns.word["outcome"] == OK)
    for limit in limits:
        values = VALUES[limit.figure](columns)
        met = limit.met(values)
        if limit.figure in MAY_BE_MISSING:
            met |= np.isnan(values)
        out &= met
    return out
