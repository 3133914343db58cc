"""When requests are due: the users of a closed loop, and the arrivals of an open one.

Open-loop schedules are pure functions of a seed. A process of rate 1 is drawn first (Poisson: exponential
gaps; gamma: gaps with a coefficient of variation of one's own; constant: gaps of 1), then its times are put
through the inverse of the cumulative rate, so that a rate that changes in time keeps the process exact. Times
are never rescaled to fit a duration or a number: that would make something else of a Poisson process.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

POISSON, CONSTANT, GAMMA, TRACE = "poisson", "constant", "gamma", "trace"
PROCESSES = (POISSON, CONSTANT, GAMMA)
MOST_ARRIVALS = 10_000_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of an open loop: due `offset_s` seconds after the turn's start. `prompt_tokens` and
    `output_tokens` are what a trace asks for, None: as the run does. `session` names requests of the same
    conversation, where a trace knows it."""

    offset_s: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time of `seconds` with `rate` requests a second on average, 0 for none."""

    seconds: float
    rate: float


def start_offsets(users: int, arrival: str, spread_s: float) -> list[float]:
    """Seconds after the turn's start at which each user of a closed loop begins.

    `burst`: all at once, so that answers of equal length make the users move in waves. `staggered`: evenly
    over `spread_s`, which should be about the time of one request, so that requests end one by one.

    >>> start_offsets(4, "staggered", 2.0)
    [0.0, 0.5, 1.0, 1.5]
    """
    if arrival == "burst":
        return [0.0] * users
    if arrival == "staggered":
        return [spread_s * i / users for i in range(users)]
    raise ValueError(f"arrival {arrival!r} is neither burst nor staggered")


def offsets(
    rates: float | Sequence[Stretch],
    process: str = POISSON,
    *,
    seed: str,
    burstiness: float = 1.0,
    seconds: float | None = None,
    requests: int | None = None,
) -> list[float]:
    """When requests are due, in seconds from the start, in order; the same for the same arguments.

    `rates` is requests a second, or stretches of time with a rate each (the last one goes on for ever).
    `burstiness` is the coefficient of variation of a gamma process's gaps: 1 is Poisson, 2 comes in bursts,
    0.5 is nearly even; other processes don't look at it. The schedule ends before `seconds`, with
    `requests`, or with whichever comes first; one of them must be given, or the rates must end at 0. Raises
    ValueError.

    >>> offsets(2.0, "constant", seed="", requests=4)
    [0.0, 0.5, 1.0, 1.5]
    >>> offsets([Stretch(2, 1), Stretch(1, 0), Stretch(1, 4)], "constant", seed="", seconds=4)
    [0.0, 1.0, 3.0, 3.25, 3.5, 3.75]
    """
    stretches = [Stretch(math.inf, rates)] if isinstance(rates, (int, float)) else list(rates)
    _check(stretches, process, burstiness, seconds, requests)
    out: list[float] = []
    end_s = math.inf if seconds is None else seconds
    for at_s in itertools.islice(_placed(stretches, _unit_times(process, burstiness, seed)), requests):
        if at_s >= end_s:
            break
        if len(out) == MOST_ARRIVALS:
            raise ValueError(f"a schedule has at most {MOST_ARRIVALS:,} requests: lower the rate or the time")
        out.append(at_s)
    return out


def part(arrivals: Sequence[Arrival], index: int, of: int) -> list[Arrival]:
    """Worker `index`'s part of a schedule that `of` workers share: every request is in exactly one part.

    >>> [a.offset_s for a in part([Arrival(t) for t in (0.0, 1.0, 2.0, 3.0, 4.0)], 1, 2)]
    [1.0, 3.0]
    """
    if not 0 <= index < of:
        raise ValueError(f"there is no part {index} of {of}")
    return list(arrivals[index::of])


def share(whole: int, index: int, of: int) -> int:
    """The part of a number that is shared out as evenly as whole numbers allow.

    >>> [share(10, i, 4) for i in range(4)]
    [3, 3, 2, 2]
    """
    return whole // of + (index < whole % of)


def _check(
    stretches: Sequence[Stretch], process: str, burstiness: float, seconds: float | None, requests: int | None
) -> None:
    if process not in PROCESSES:
        raise ValueError(f"arrivals are {', '.join(PROCESSES)}, not {process!r}")
    if not (burstiness > 0 and math.isfinite(burstiness)):
        raise ValueError(f"burstiness is a number above 0, not {burstiness:g}")
    if not stretches:
        raise ValueError("a schedule has at least one stretch")
    for one in stretches:
        if not (one.rate >= 0 and math.isfinite(one.rate)):
            raise ValueError(f"a rate is a number of requests a second, not {one.rate:g}")
        if not one.seconds > 0:
            raise ValueError(f"a stretch lasts longer than {one.seconds:g} s")
    if seconds is None and requests is None and stretches[-1].rate > 0:
        raise ValueError("a schedule ends after some seconds, or after some requests")


def _unit_times(process: str, burstiness: float, seed: str) -> Iterator[float]:
    """Endless times of a process with one arrival a second on average."""
    if process == CONSTANT:
        yield from (float(k) for k in itertools.count())
    rng = random.Random(seed)
    shape = 1.0 if process == POISSON else burstiness**-2
    now = 0.0
    while True:
        now += rng.expovariate(1.0) if process == POISSON else rng.gammavariate(shape, 1 / shape)
        yield now


def _placed(stretches: Sequence[Stretch], unit: Iterator[float]) -> Iterator[float]:
    """Each time of the unit process where the cumulative rate reaches it; ends when it never does."""
    begin_s = before = 0.0  # where the stretch begins, and the cumulative rate there
    left = list(stretches)
    for due in unit:
        while len(left) > 1 and due >= before + left[0].rate * left[0].seconds:
            before += left[0].rate * left[0].seconds
            begin_s += left.pop(0).seconds
        if not left[0].rate:
            return  # the last stretch, and nothing is due in it
        yield begin_s + (due - before) / left[0].rate
