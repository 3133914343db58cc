"""A set of objectives: what somebody asks of an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loadgen.config import ConfigError
from loadgen.metrics.goodput import VALUES
from loadgen.slo.expression import REQUEST, Objective, parse_objective
from loadgen.slo.presets import PRESETS


@dataclass(frozen=True, slots=True)
class Slo:
    """`objectives` are judged one by one; `limits` are what a request must keep to be a good one."""

    objectives: tuple[Objective, ...]
    limits: tuple[Objective, ...] = ()


def parse_slo(texts: Iterable[str]) -> Slo:
    """From expressions and names of presets, several in one text with commas between them.

    Goodput without a limit for single requests takes those of the percentiles that stand beside it. Raises
    ConfigError of what can't be read, of goodput without any limit, of a limit without goodput, and if there
    is nothing.
    """
    found: dict[Objective, None] = {}
    for text in texts:
        for part in filter(None, (p.strip() for p in text.split(","))):
            found |= dict.fromkeys(map(parse_objective, PRESETS.get(part, (part,))))
    limits = tuple(o for o in found if o.statistic == REQUEST)
    objectives = tuple(o for o in found if o.statistic != REQUEST)
    if not found:
        raise ConfigError(f"no objective: give one like 'ttft_p95<500ms', or a preset ({', '.join(PRESETS)})")
    if any(o.kind.figure.startswith("goodput") for o in objectives):
        limits = limits or tuple(
            o for o in objectives if o.percentile is not None and o.kind.figure in VALUES
        )
        if not limits:
            raise ConfigError(
                "goodput needs limits that a good request keeps: add one like 'ttft<500ms' or 'tpot<50ms'"
            )
    elif limits:
        name, rest = limits[0].text[: limits[0].text.index(limits[0].op)], limits[0].text
        raise ConfigError(
            f"{rest!r} is a limit for single requests: say how many must keep it ('goodput>0.99'), "
            f"or give a percentile ('{rest.replace(name, name + '_p95', 1)}')"
        )
    return Slo(objectives, limits)
