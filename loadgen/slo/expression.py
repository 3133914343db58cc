"""Service level objectives as people write them: `ttft_p95<500ms`, `goodput>0.99`, `failures<1%`.

    NAME[_STATISTIC] (< | <= | > | >=) NUMBER[UNIT]

A time or a speed takes a percentile or the mean (`ttft_p95`, `tpot_p99.9`, `e2e_mean`), which is then an
objective; without one it is a limit for every single request, and `goodput` says how many must keep it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadgen.config import ConfigError
from loadgen.metrics.goodput import VALUES, Limit
from loadgen.plain import clean

REQUEST = "request"  # the statistic of a limit for single requests
VALUE = "value"  # ... and of a figure that a run has one of
MEAN = "mean"

_MS = {"": 1.0, "ms": 1.0, "s": 1000.0, "us": 0.001}
_TOKENS = {"": 1.0, "tok/s": 1.0, "tokens/s": 1.0, "/s": 1.0}
_RATE = {"/s": 1.0, "req/s": 1.0, "requests/s": 1.0}
_SHARE = {"": 1.0, "%": 0.01}


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What can be asked for: `figure` is its name in the summary, `unit` what limits are kept in."""

    figure: str
    title: str
    unit: str
    units: dict[str, float]
    higher_is_better: bool = False
    distribution: bool = True


KINDS = {
    "ttft": Kind("ttft_ms", "TTFT", "ms", _MS),
    "tpot": Kind("tpot_ms", "TPOT", "ms", _MS),
    "e2e": Kind("e2e_ms", "end-to-end time", "ms", _MS),
    "ttfa": Kind("ttfa_ms", "TTFA", "ms", _MS),
    "first_event": Kind("first_event_ms", "time to first event", "ms", _MS),
    "headers": Kind("headers_ms", "time to response head", "ms", _MS),
    "chunk_gap": Kind("chunk_gap_ms", "chunk gap", "ms", _MS),
    "scheduled_ttft": Kind("scheduled_ttft_ms", "scheduled TTFT", "ms", _MS),
    "scheduled_e2e": Kind("scheduled_e2e_ms", "scheduled end-to-end time", "ms", _MS),
    "decode": Kind("decode_tokens_per_s", "decode speed", "tok/s", _TOKENS, True),
    "throughput": Kind("throughput_tokens_per_s", "throughput", "tok/s", _TOKENS, True, False),
    "requests": Kind("requests_per_s", "requests per second", "/s", {"": 1.0, **_RATE}, True, False),
    "energy": Kind(
        "joules_per_output_token", "energy per output token", "J", {"": 1.0, "J": 1.0}, False, False
    ),
    "failures": Kind("failures", "failed requests", "", _SHARE, False, False),
    "goodput": Kind("goodput", "goodput", "", _SHARE, True, False),
}
GOODPUT_PER_S = Kind("goodput_per_s", "good requests per second", "/s", _RATE, True, False)
LARGEST_LIMIT = 1e12
LEAST_SHARE = 1e-9
SHARES = ("failures", "goodput")

_FORM = re.compile(
    r"\s*(?P<name>[a-z][a-z0-9_]*?)(?:_(?P<statistic>p\d+(?:\.\d+)?|mean|median))?\s*"
    r"(?P<op><=|>=|<|>)\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-zA-Z/%]*)\s*"
)


@dataclass(frozen=True, slots=True)
class Objective:
    """One parsed expression. `statistic` is a percentile (`p95`), MEAN, VALUE or REQUEST; `limit` is in
    `kind.unit`, shares from 0 to 1; `text` is the expression as it was written, without blanks."""

    text: str
    kind: Kind
    statistic: str
    op: str
    limit: float

    @property
    def percentile(self) -> float | None:
        return float(self.statistic[1:]) if self.statistic.startswith("p") else None

    @property
    def as_limit(self) -> Limit:
        return Limit(self.kind.figure, self.op.startswith("<"), self.limit, self.op.endswith("="))

    def holds(self, value: float) -> bool:
        if self.op.startswith("<"):
            return value <= self.limit if self.op == "<=" else value < self.limit
        return value >= self.limit if self.op == ">=" else value > self.limit


def parse_objective(text: str) -> Objective:
    """One expression. Raises ConfigError with a sentence that says how to write it."""
    shown = repr(clean(text, 60))
    form = _FORM.fullmatch(text)
    if form is None:
        raise ConfigError(
            f"{shown} is no objective: write it in quotes and like 'ttft_p95<500ms', 'goodput>0.99' or "
            "'throughput>300', or name a preset"
        )
    name, statistic, op, unit = form["name"], form["statistic"], form["op"], form["unit"]
    kind = KINDS.get(name.removesuffix("_ms"))
    if kind is None:
        raise ConfigError(f"{shown}: there is no figure {clean(name, 40)!r} (known: {', '.join(KINDS)})")
    if kind.figure == "goodput" and unit in _RATE:
        kind = GOODPUT_PER_S
    if unit not in kind.units:
        known = ", ".join(u for u in kind.units if u) + (", /s" if kind.figure == "goodput" else "")
        raise ConfigError(f"{shown}: {unit!r} is no unit of {kind.title} (known: {known})")
    if kind.higher_is_better != op.startswith(">"):
        side = "more" if kind.higher_is_better else "less"
        turned = op.translate(str.maketrans("<>", "><"))
        raise ConfigError(f"{shown}: {side} is better in {kind.title}, so write {turned} instead of {op}")
    limit = float(form["number"]) * kind.units[unit]
    _check_limit(kind, op, limit, shown)
    return Objective("".join(text.split()), kind, _statistic(kind, statistic, shown), op, limit)


def _statistic(kind: Kind, statistic: str | None, shown: str) -> str:
    if not kind.distribution:
        if statistic is not None:
            raise ConfigError(f"{shown}: {kind.title} is one number, it has no {statistic}")
        return VALUE
    if statistic is None:
        if kind.figure not in VALUES:
            raise ConfigError(f"{shown}: {kind.title} needs a percentile, such as p95")
        return REQUEST
    if statistic == "median":
        return "p50"
    if statistic != MEAN and not 0 < float(statistic[1:]) < 100:
        raise ConfigError(f"{shown}: a percentile lies between 0 and 100")
    return statistic


def _check_limit(kind: Kind, op: str, limit: float, shown: str) -> None:
    if kind.figure in SHARES:
        if limit > 1:
            raise ConfigError(f"{shown}: that is a share of all requests: write 1% or 0.01")
        if 0 < min(limit, 1 - limit) < LEAST_SHARE:
            none = "<=0" if op.startswith("<") else ">=1"
            raise ConfigError(f"{shown}: no run can show so fine a share, write {none} or a coarser one")
        if (limit == 0 and op == "<") or (limit == 1 and op == ">"):
            raise ConfigError(f"{shown}: no share lies beyond that, write {op}= instead of {op}")
    elif limit <= 0:
        raise ConfigError(f"{shown}: the limit must be more than 0")
    elif limit > LARGEST_LIMIT:
        raise ConfigError(f"{shown}: nothing measured is ever so large")
