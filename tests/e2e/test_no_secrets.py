"""No key that a person sets is in any file, log, page, database or process argument of ours."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadgen.sim.launch import SimProcess
from tests.e2e.conftest import SHORT
from tests.e2e.test_locust_web import Web, finished
from tests.support.influxdb import Bucket
from tests.support.locust_run import ROOT, LocustRun, run_loadgen, start_loadgen
from tests.support.tap import Tap

FAKE_NVML = ROOT / "tests" / "support" / "fakenvml"
COMMANDS = (
    "summary latest --json",
    "ship latest --loadgen-config {config}",
    "ship latest --again --loadgen-config {config}",
    "ship latest --dry-run --loadgen-config {config}",
    "influx check --loadgen-config {config}",
    "engines --loadgen-config {config}",
)
PAGES = ("/", "/stats/requests", "/exceptions", "/logs", "/tasks", "/stats/report?download=1")


@dataclass
class Keys:
    """What must not be found, and where it was."""

    influxdb: str
    telemetry: str = field(default_factory=lambda: secrets.token_hex(16))
    engine: str = field(default_factory=lambda: f"sk-{secrets.token_hex(16)}")
    header: str = field(default_factory=lambda: secrets.token_hex(16))

    def __post_init__(self) -> None:
        plain = [self.influxdb, self.telemetry, self.engine, self.header]
        self._forms = [form for key in plain for form in (key.encode(), base64.b64encode(key.encode()))]

    def inside(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)

    def files(self, folder: Path) -> list[str]:
        files = [p for p in folder.rglob("*") if p.is_file()]
        assert files
        return [str(p) for p in files if self.inside(p.read_bytes())]


class Arguments:
    """Looks at the arguments of every process, again and again."""

    def __init__(self, keys: Keys) -> None:
        self.found: set[str] = set()
        self.looks = 0
        self._keys = keys
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Arguments:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.05):
            for entry in os.listdir("/proc"):
                try:
                    data = Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
                except OSError:
                    continue
                if self._keys.inside(data):
                    self.found.add(data.replace(b"\0", b" ").decode("utf-8", "replace"))
            self.looks += 1


@pytest.fixture
def keys(bucket: Bucket) -> Keys:
    return Keys(bucket.token)


@pytest.fixture
def env(bucket: Bucket, keys: Keys) -> dict[str, str]:
    return {**bucket.env, "LOADGEN_TELEMETRY_TOKEN": keys.telemetry, "ENGINE_KEY": keys.engine}


@pytest.fixture
def engine(sims: tuple[SimProcess, SimProcess]) -> Iterator[Tap]:
    with Tap(sims[0].url) as tap:
        yield tap


@pytest.fixture
def agent(tmp_path: Path, env: dict[str, str]) -> Iterator[LocustRun]:
    """`loadgen telemetry --listen` on another host, as it were."""
    folder = tmp_path / "gpuhost"
    folder.mkdir()
    started = start_loadgen(
        folder / "runs",
        # The run that is watched lasts hardly longer than the usual second between two samples.
        *("telemetry", "--listen", "127.0.0.1:0", "--interval", "0.1", "--runs-dir", str(folder / "runs")),
        env={**env, "PYTHONPATH": f"{FAKE_NVML}{os.pathsep}{ROOT}"},
    )
    yield started
    started.stop()


def test_nothing_of_a_run_holds_a_key(
    runs: Path, bucket: Bucket, keys: Keys, env: dict[str, str], engine: Tap, agent: LocustRun
) -> None:
    config = runs.parent / "config" / "keyed.toml"
    config.parent.mkdir()
    config.write_text(
        f'[engines.a]\nkind = "vllm"\nurl = "{engine.url}"\napi_key_env = "ENGINE_KEY"\n'
        f'headers = {{ X-Key = "{keys.header}" }}\n'
        f'[telemetry]\ngpu = "off"\ninterval_s = 0.2\nagents = ["{listening(agent)}"]\n'
    )
    with Arguments(keys) as arguments:
        web = Web(runs, "--loadgen-config", str(config), *SHORT, env=env)
        pages = [web.get(path) for path in PAGES]
        web.swarm()
        web.run.wait_for(finished(web, 1))
        pages += [web.get(path) for path in PAGES]
        web.run.send(signal.SIGINT)
        run = web.run.wait()
        shown = [run_loadgen(runs, *c.format(config=config).split(), env=env) for c in COMMANDS]
        agent.stop()
    assert arguments.looks > 5

    # The keys were there and were used: else what follows would prove nothing.
    heads = "\n".join(engine.heads)
    assert f"bearer {keys.engine}" in heads
    assert f"x-key: {keys.header}" in heads
    assert bucket.value("SELECT count(ttft_ms) FROM llm_request WHERE phase = 'measure'") == 8
    assert any('"sample"' in line for line in (run.dir / "gpu.jsonl").read_text().splitlines())
    assert [(s.code, s.err) for s in shown if s.code] == []

    assert keys.files(config.parent) == [str(config)]  # a person's own file, and what a find looks like

    assert arguments.found == set()
    assert keys.files(runs) == []
    assert keys.files(runs.parent / "gpuhost") == []
    assert [page[:200] for page in pages if keys.inside(page.encode())] == []
    assert [s.out + s.err for s in (run, *shown, agent.wait()) if keys.inside((s.out + s.err).encode())] == []
    stored = json.dumps(bucket.query("SELECT * FROM /.*/"))
    assert len(stored) > 1000
    assert not keys.inside(stored.encode())


@pytest.mark.parametrize("command", ["ship latest", "influx check"])
def test_a_key_that_is_refused_is_not_shown(
    runs: Path, both: tuple[str, ...], bucket: Bucket, command: str
) -> None:
    assert run_loadgen(runs, "run", "single_user", *both, *SHORT, "--runs-dir", str(runs)).code == 0
    wrong = Keys(f"wrong-{secrets.token_hex(8)}")
    refused = run_loadgen(runs, *command.split(), env={**bucket.env, "INFLUXDB_TOKEN": wrong.influxdb})
    assert refused.code == 1
    assert "Traceback" not in refused.err
    assert not wrong.inside((refused.out + refused.err).encode())
    assert wrong.files(runs.parent) == []


def listening(agent: LocustRun) -> str:
    """The address that the agent says it listens at."""
    return str(agent.wait_for(lambda a: re.search(r"serving samples at (http://[\d.:]+)/", a.printed()))[1])
