"""The load of a run in words, from its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from loadgen.plain import clean, plural
from loadgen.workload.arrivals import PROCESSES, TRACE
from loadgen.workload.shapes import HAND


def is_open(settings: Mapping[str, Any]) -> bool:
    """Whether requests came by a schedule. Manifests of older versions know of none."""
    return settings.get("arrival") in (*PROCESSES, TRACE)


def is_shaped(settings: Mapping[str, Any]) -> bool:
    """Whether the number of users varied within turns."""
    return isinstance(settings.get("shape"), str) and bool(settings["shape"])


def rate_of(settings: Mapping[str, Any]) -> float | None:
    """Requests a second, where a rate was asked for."""
    spec = settings.get("open_loop")
    rate = spec.get("rate") if isinstance(spec, Mapping) and is_open(settings) else None
    return float(rate) if isinstance(rate, (int, float)) and not isinstance(rate, bool) else None


def load_words(settings: Mapping[str, Any]) -> list[str]:
    """`16 users`, `64 requests a turn`; of an open loop `8 requests a second, poisson`, `60 s a turn`.

    >>> load_words({"arrival": "poisson", "open_loop": {"rate": 8.0, "turn_s": 60.0}})
    ['8 requests a second, poisson', '60 s a turn']
    >>> load_words({"shape": "steps:1,8@30s", "users": 8})
    ['users by steps:1,8@30s, up to 8']
    """
    out = []
    if is_shaped(settings):
        shape, users = clean(settings["shape"], 60), settings.get("users")
        if shape == HAND:
            return ["users by hand"]
        return [f"users by {shape}" + (f", up to {users:,}" if isinstance(users, int) else "")]
    found = settings.get("open_loop")
    spec: Mapping[str, Any] = found if isinstance(found, Mapping) and is_open(settings) else {}
    if is_open(settings):
        out.append(_arrivals(settings, spec))
    elif isinstance(settings.get("users"), int):
        out.append(plural(settings["users"], "user"))
    if isinstance(spec.get("turn_s"), (int, float)):
        out.append(f"{spec['turn_s']:g} s a turn")
    elif isinstance(settings.get("turn_requests"), int):
        out.append(f"{plural(settings['turn_requests'], 'request')} a turn")
    return out


def _arrivals(settings: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    arrival = str(settings["arrival"])
    if arrival == TRACE:
        speed = spec.get("speed_up")
        fast = f", {speed:g} times as fast" if isinstance(speed, (int, float)) and speed != 1 else ""
        return f"trace {clean(PurePath(str(spec.get('trace'))).name, 40)}{fast}"
    if arrival == "gamma" and isinstance(spec.get("burstiness"), (int, float)):
        arrival = f"gamma with burstiness {spec['burstiness']:g}"
    rate = rate_of(settings)
    return f"{rate:g} requests a second, {arrival}" if rate is not None else arrival
