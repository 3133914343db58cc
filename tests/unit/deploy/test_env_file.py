"""`make env`, and .env.example against docker-compose.yml."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest
from make_env import filled, main, missing

from tests.support.compose import PROFILES, ROOT, SECRETS, compose

EXAMPLE = ROOT / ".env.example"
COMPOSE = ROOT / "docker-compose.yml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".env.example").write_text(EXAMPLE.read_text())
    return tmp_path


def secrets_of(text: str) -> dict[str, str]:
    return {n: v for n, v in re.findall(r"^([A-Z_]+)=(.*)$", text, re.M) if n in SECRETS}


def test_every_secret_is_fresh_and_only_the_owner_can_read_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert main(folder) == 0
    values = secrets_of((folder / ".env").read_text())
    assert set(values) == set(SECRETS)
    assert len(set(values.values())) == len(SECRETS)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", value) for value in values.values())
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600
    other = tmp_path_factory.mktemp("other")
    (other / ".env.example").write_text(EXAMPLE.read_text())
    assert main(other) == 0
    assert not set(values.values()) & set(secrets_of((other / ".env").read_text()).values())


def test_nothing_but_the_secrets_differs_from_the_example(folder: Path) -> None:
    main(folder)
    made = re.sub(r"^([A-Z_]+_(?:PASSWORD|TOKEN)=).+$", r"\1", (folder / ".env").read_text(), flags=re.M)
    assert made == EXAMPLE.read_text()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_mode_does_not_depend_on_the_umask(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert main(folder) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600


def test_an_env_file_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = "".join(f"{name}=mine\n" for name in SECRETS)
    (folder / ".env").write_text(mine)
    assert main(folder) == 0
    assert "left as it is" in capsys.readouterr().out
    (folder / ".env").write_text("INFLUXDB_TOKEN=mine\nGRAFANA_PASSWORD=\n")
    assert main(folder) == 1
    assert "lacks INFLUXDB_PASSWORD, GRAFANA_PASSWORD, LOADGEN_TELEMETRY_TOKEN" in capsys.readouterr().err
    assert (folder / ".env").read_text() == "INFLUXDB_TOKEN=mine\nGRAFANA_PASSWORD=\n"


def test_a_folder_without_the_example_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(tmp_path) == 1
    assert (
        capsys.readouterr().err == f"{tmp_path / '.env.example'} cannot be used: No such file or directory\n"
    )


@pytest.mark.parametrize(
    ("env", "lacking"),
    [
        ("A_TOKEN=x\nB_PASSWORD=y\n", []),
        ("export A_TOKEN=x\n B_PASSWORD = y\n", []),
        ("A_TOKEN=\n# B_PASSWORD=y\n", ["A_TOKEN", "B_PASSWORD"]),
        ("A_TOKEN=   # later\nB_PASSWORD=y", ["A_TOKEN"]),
        ("", ["A_TOKEN", "B_PASSWORD"]),
    ],
)
def test_what_an_env_file_lacks(env: str, lacking: list[str]) -> None:
    assert missing("A_TOKEN=\nB_PASSWORD=\nC_URL=\n# D_TOKEN=\n", env) == lacking


def test_the_example_holds_no_secret_and_asks_for_all() -> None:
    assert secrets_of(EXAMPLE.read_text()) == dict.fromkeys(SECRETS, "")


def test_the_example_and_the_compose_file_name_the_same_variables() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", COMPOSE.read_text()))
    shown = set(re.findall(r"^(?:# )?([A-Z_]+)=", EXAMPLE.read_text(), re.M))
    assert shown == used | {"COMPOSE_PROFILES"}


def test_the_example_shows_the_defaults() -> None:
    text = EXAMPLE.read_text()
    shown = {n: v.split("  ")[0] for n, v in re.findall(r"^# ([A-Z_]+)=(.+)$", text, re.M)}
    examples = {
        "LOCUST_ARGS",
        "LOCUST_CPUS",
        "RUNS_DIR",
        "MASTER_HOST",
        "SIM_ARGS",
        "VLLM_ARGS",
        "LLAMACPP_ARGS",
        "LOADGEN_WEB_USER",
        "LOADGEN_WEB_PASSWORD_HASH",
        "LOADGEN_WEB_HOSTS",
    }
    engines = {"COMPOSE_PROFILES", "VLLM_URL", "LLAMACPP_URL", "TELEMETRY_AGENTS"}
    defaults = dict(re.findall(r"\$\{([A-Z_]+):-([^$}]+)\}", COMPOSE.read_text()))
    assert examples | engines <= shown.keys()
    for name in ("RUNS_DIR", "MASTER_HOST"):  # a volume, and a service here; shown is what else there may be
        del defaults[name]
    assert {n: v for n, v in shown.items() if n not in examples | engines} == defaults


def test_remarks_behind_a_value_are_not_part_of_it(tmp_path: Path) -> None:
    env = tmp_path / "all.env"
    turned_on = re.sub(r"^# (?=[A-Z_]+=)", "", filled(EXAMPLE.read_text()), flags=re.M)
    env.write_text(turned_on)
    done = compose(env, *PROFILES)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert services["locust"]["command"][6:] == ["-u", "32", "--blocks", "6"]
    assert services["influxdb"]["environment"]["DOCKER_INFLUXDB_INIT_RETENTION"] == "0s"
    assert services["llamacpp"]["command"][-2:] == ["-b", "2048"]
    assert "#" not in json.dumps(services)


@pytest.mark.parametrize("block", range(3))
def test_each_set_of_engines_in_the_example_fits_its_profiles(tmp_path: Path, block: int) -> None:
    """Every engine and agent that an address names is started by the same set's profiles, or is the host."""
    text = EXAMPLE.read_text()
    sets = re.split(r"^(?=(?:# )?COMPOSE_PROFILES=)", text, flags=re.M)[1:]
    assert len(sets) == 3
    names = ("COMPOSE_PROFILES", "VLLM_URL", "LLAMACPP_URL", "TELEMETRY_AGENTS")
    chosen = dict(re.findall(rf"^(?:# )?({'|'.join(names)})=(\S+)", sets[block], re.M))
    env = tmp_path / "set.env"
    env.write_text("".join(f"{n}={v}\n" for n, v in {**SECRETS, **chosen}.items()))
    services = json.loads(compose(env).stdout)["services"]
    for name in names[1:]:
        if name in chosen:
            host, port = re.fullmatch(r"http://([a-z.]+):(\d+)", chosen[name]).groups()
            assert host in services or host == "host.docker.internal", chosen[name]
            assert port == {"VLLM_URL": "8000", "LLAMACPP_URL": "8001", "TELEMETRY_AGENTS": "9467"}[name]
