from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loadgen.sim.launch import SimProcess
from tests.conftest import required
from tests.support.chromium import Browser, NotInstalled

SHORT = ("--turn-requests", "8", "--blocks", "1", "--output-tokens", "8", "--cooldown", "0")


@pytest.fixture(scope="session")
def sims() -> Iterator[tuple[SimProcess, SimProcess]]:
    """A simulated vLLM and llama.cpp, twenty times as fast as the reference experiment."""
    with SimProcess("vllm", speed=20) as vllm, SimProcess("llamacpp", speed=20) as llamacpp:
        yield vllm, llamacpp


@pytest.fixture
def both(sims: tuple[SimProcess, SimProcess]) -> tuple[str, ...]:
    """--engine flags: A is the simulated vLLM, B the simulated llama.cpp."""
    return engine_flags(a=sims[0], b=sims[1])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def sim() -> Iterator[Callable[..., SimProcess]]:
    """Starts a simulated engine of this test's own."""
    started: list[SimProcess] = []

    def start(kind: str, **options: object) -> SimProcess:
        started.append(SimProcess(kind, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real one."""
    try:
        started = Browser(tmp_path_factory.mktemp("chromium"))
    except NotInstalled as e:
        if required("chromium"):
            pytest.fail(str(e), pytrace=False)
        pytest.skip(str(e))
    with started:
        yield started


def engine_flags(**engines: SimProcess) -> tuple[str, ...]:
    return tuple(
        part for name, one in engines.items() for part in ("--engine", f"{name}={one.kind}:{one.url}")
    )
