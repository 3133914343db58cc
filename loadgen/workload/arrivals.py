"""When requests are due: the users of a closed loop, and the arrivals of an open one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of an open loop: due `offset_s` seconds after the turn's start. `prompt_tokens` and
    `output_tokens` are what a trace asks for, None: as the run does. `session` names requests of the same
    conversation, where a trace knows it."""

    offset_s: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    session: str | None = None


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
