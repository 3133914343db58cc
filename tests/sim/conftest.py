"""Simulated engines for the tests, each started once; one as fast as the wire, to wait for nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loadgen.sim.launch import SimProcess

KINDS = ("vllm", "llamacpp")


@pytest.fixture(scope="session")
def fast() -> Iterator[dict[str, SimProcess]]:
    """Both kinds, a token a millisecond."""
    with SimProcess("vllm", preset="vllm-fast") as v, SimProcess("llamacpp", preset="llamacpp-fast") as c:
        yield {"vllm": v, "llamacpp": c}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


@pytest.fixture
def sim(kind: str, fast: dict[str, SimProcess]) -> SimProcess:
    """The fast server of each kind."""
    return fast[kind]
