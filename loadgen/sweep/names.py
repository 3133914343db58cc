"""What the loads of a sweep are called, and the scenarios of its steps: each load is one of its own, so that
trends compare like with like."""

from __future__ import annotations

from pathlib import Path

USERS, RATE = "users", "rate"  # what a sweep raises; a rate is requests a second, in an open loop


def shown(load: float) -> str:
    """A load as a number.

    >>> shown(2048), shown(0.5), shown(12.0)
    ('2,048', '0.5', '12')
    """
    return f"{load:,.10g}"


def load_words(load: float, variable: str = USERS) -> str:
    """
    >>> load_words(1), load_words(16), load_words(2.5, RATE)
    ('1 user', '16 users', '2.5 requests/s')
    """
    if variable == RATE:
        return f"{shown(load)} requests/s"
    return f"{shown(load)} user{'' if load == 1 else 's'}"


def step_scenario(workload: str, load: float) -> str:
    """What a step's run is called.

    >>> step_scenario("concurrency", 16), step_scenario("mine/chatty.py", 4), step_scenario("open_loop", 0.5)
    ('concurrency_16', 'chatty_4', 'open_loop_0.5')
    """
    return f"{Path(workload).stem}_{load:.10g}"


def swept_scenario(scenario: str, load: float | None) -> str:
    """The name that all steps of a sweep share; of a run that is no step, its own.

    >>> swept_scenario("concurrency_16", 16), swept_scenario("concurrency", 16)
    ('concurrency', 'concurrency')
    """
    return scenario if load is None else scenario.removesuffix(f"_{load:.10g}")
