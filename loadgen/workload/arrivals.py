"""When each user of a closed loop sends its first request of a turn."""

from __future__ import annotations


def start_offsets(users: int, arrival: str, spread_s: float) -> list[float]:
    """Seconds after the turn's start at which each user begins.

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
