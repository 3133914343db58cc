"""The scenarios of a sweep's steps: each load is one of its own, so that trends compare like with like."""

from __future__ import annotations

from pathlib import Path


def step_scenario(workload: str, load: int) -> str:
    """What a step's run is called.

    >>> step_scenario("concurrency", 16), step_scenario("mine/chatty.py", 4)
    ('concurrency_16', 'chatty_4')
    """
    return f"{Path(workload).stem}_{load}"


def swept_scenario(scenario: str, load: int | None) -> str:
    """The name that all steps of a sweep share; of a run that is no step, its own.

    >>> swept_scenario("concurrency_16", 16), swept_scenario("concurrency", 16)
    ('concurrency', 'concurrency')
    """
    return scenario.removesuffix(f"_{load}")
