"""Servers for tests: the real ones (installed by `make test`) and the simulated ones, each once a session."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library: before anything imports ssl)

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from engine_install import SetupError  # noqa: E402
from engine_server import RealServer  # noqa: E402

from tests.support.influxdb import Bucket, InfluxError, InfluxServer, NotInstalled  # noqa: E402

# How long an example takes says how busy the machine is, nothing about the code: no test is timed.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def required(kind: str) -> bool:
    """Whether a missing real server is a failure: LOADGEN_REQUIRE_REAL lists such kinds
    (`llamacpp,vllm,influxdb,chromium`).

    Continuous integration requires llama.cpp, InfluxDB and Chromium: a test skipped there would be read as
    passed.
    """
    asked = os.environ.get("LOADGEN_REQUIRE_REAL", "")
    kinds = {part.strip() for part in asked.split(",")}
    if asked == "1":
        kinds.add("llamacpp")
    if os.environ.get("CI", "").lower() in ("1", "true"):
        kinds |= {"llamacpp", "influxdb", "chromium"}
    return kind in kinds


def _real(kind: str, **options: int) -> Iterator[RealServer]:
    try:
        server = RealServer(kind, **options)
    except SetupError as e:
        if required(kind):
            pytest.fail(str(e), pytrace=False)
        pytest.skip(str(e))
    try:
        with server:
            yield server
    except SetupError as e:  # installed, and does not start: never a reason to skip
        pytest.fail(str(e), pytrace=False)


@pytest.fixture(scope="session")
def real_llamacpp() -> Iterator[RealServer]:
    """llama.cpp's own server with SmolLM2-135M: 4 slots of 4,096 tokens. `.url`, `.log`."""
    yield from _real("llamacpp")


@pytest.fixture(scope="session")
def real_vllm() -> Iterator[RealServer]:
    """The real vLLM on CPU with the same weights; 4,096 tokens of context. `.url`, `.log`."""
    yield from _real("vllm")


@pytest.fixture(scope="session")
def influxdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    """A real InfluxDB with the v2 write API in front; not to be killed by a test (start one of your own)."""
    try:
        server = InfluxServer(tmp_path_factory.mktemp("influxdb")).start()
    except NotInstalled as e:
        if required("influxdb"):
            pytest.fail(str(e), pytrace=False)
        pytest.skip(str(e))
    except InfluxError as e:
        pytest.fail(str(e), pytrace=False)
    yield server
    server.stop()


@pytest.fixture
def bucket(influxdb: InfluxServer) -> Iterator[Bucket]:
    """An empty bucket of its own for one test: `.env`, `.query(sql)`, `.rows(sql)`, `.value(sql)`."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    influxdb.create(name)
    yield Bucket(influxdb, name)
    influxdb.drop(name)
