"""What the containers are told, understood by the product's own parsers and settings."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from loadgen.config import Settings, load_settings
from loadgen.sim.options import to_options
from tests.support.compose import PROFILES, ROOT, services

FILE = ROOT / "deploy" / "loadgen.toml"


def test_the_locust_containers_environment_names_engines_database_and_agents(tmp_path: Path) -> None:
    env = services(
        tmp_path,
        VLLM_URL="http://vllm:8000",
        LLAMACPP_URL="http://llamacpp:8001",
        TELEMETRY_AGENTS="http://telemetry:9467",
    )["locust"]["environment"]
    settings = load_settings(env=env, config_file=FILE)
    assert [(e.name, e.kind, e.url) for e in settings.engines] == [
        ("vllm", "vllm", "http://vllm:8000"),
        ("llamacpp", "llamacpp", "http://llamacpp:8001"),
    ]
    assert (settings.influxdb.url, settings.influxdb.org, settings.influxdb.bucket) == (
        "http://influxdb:8086",
        "loadgen",
        "loadgen",
    )
    assert settings.influxdb.token(env) == "token-influx"
    assert settings.telemetry.agents == ("http://telemetry:9467",)
    assert settings.telemetry.token(env) == "token-telemetry"


def test_one_engine_alone_is_one_engine(tmp_path: Path) -> None:
    env = services(tmp_path, VLLM_URL="http://vllm:8000")["locust"]["environment"]
    assert [e.name for e in load_settings(env=env, config_file=FILE).engines] == ["vllm"]


def test_the_settings_file_of_the_container_changes_nothing_as_it_stands() -> None:
    assert load_settings(env={}, config_file=FILE).model_dump(exclude={"engines"}) == Settings().model_dump(
        exclude={"engines"}
    )


def parsed(command: list[str]) -> argparse.Namespace:
    assert command[0] == "loadgen"
    module = importlib.import_module(f"loadgen.cli.{command[1]}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return parser.parse_args(command[2:])


def test_the_simulated_engines_listen_where_env_example_looks_for_them(tmp_path: Path) -> None:
    command = services(tmp_path, "sim", SIM_ARGS="--speed 10")["sim"]["command"]
    made = to_options(parsed(command))
    assert [(o.kind, o.host, o.port, o.speed) for o in made] == [
        ("vllm", "0.0.0.0", 8000, 10),
        ("llamacpp", "0.0.0.0", 8001, 10),
    ]


def test_the_gpu_samplers_command_is_one(tmp_path: Path) -> None:
    args = parsed(services(tmp_path, "gpu")["telemetry"]["command"])
    assert args.listen == "0.0.0.0:9467"


def test_the_locustfile_is_there(tmp_path: Path) -> None:
    for name in ("locust", "worker"):
        command = services(tmp_path, *PROFILES)[name]["command"]
        assert (ROOT / command[command.index("-f") + 1]).is_file()
