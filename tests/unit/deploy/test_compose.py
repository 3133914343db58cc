"""docker-compose.yml, read by the real Compose: what each profile starts, what is refused, what is open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadgen import __version__
from tests.support.compose import PROFILES, ROOT, SECRETS, compose, model, services, write_env

FILE = ROOT / "docker-compose.yml"
ALWAYS = {"influxdb", "grafana", "locust", "worker"}
OURS = {"locust", "worker", "telemetry", "sim"}


@pytest.mark.parametrize(
    ("profiles", "more"),
    [
        ((), set()),
        (("sim",), {"sim"}),
        (("vllm",), {"vllm", "telemetry"}),
        (("llamacpp",), {"llamacpp", "telemetry"}),
        (("vllm", "llamacpp"), {"vllm", "llamacpp", "telemetry"}),
        (("gpu",), {"telemetry"}),
        (PROFILES, {"sim", "vllm", "llamacpp", "telemetry"}),
    ],
)
def test_each_profile_starts_its_services(tmp_path: Path, profiles: tuple[str, ...], more: set[str]) -> None:
    assert set(services(tmp_path, *profiles)) == ALWAYS | more


def test_profiles_come_from_the_env_file_too(tmp_path: Path) -> None:
    assert "sim" in services(tmp_path, COMPOSE_PROFILES="sim")


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_secret_is_refused_by_name(tmp_path: Path, name: str, value: str | None) -> None:
    env = {key: text for key, text in SECRETS.items() if key != name}
    if value is not None:
        env[name] = value
    done = compose(write_env(tmp_path, env))
    assert done.returncode != 0
    assert f"required variable {name} is missing a value: run make env, or set it in .env" in done.stderr
    assert not any(text in done.stdout + done.stderr for text in SECRETS.values())


def test_no_secret_is_written_down() -> None:
    text = FILE.read_text()
    for name in SECRETS:
        assert re.findall(rf"\$\{{{name}:-", text) == []
    assert set(re.findall(r"([A-Z_]+):\?", text)) == set(SECRETS)


def test_images_are_pinned(tmp_path: Path) -> None:
    images = {name: s["image"] for name, s in services(tmp_path, *PROFILES).items()}
    for name, image in images.items():
        tag = image.rpartition(":")[2]
        assert re.search(r"\d+\.\d+\.\d+|-b\d{4,}$", tag), f"{name}: {image} names no exact version"
    assert images["influxdb"] == "influxdb:2.9.1"  # 3 is another product, and what `latest` has become
    assert images["grafana"] == "grafana/grafana:13.2.3"
    assert {images[name] for name in OURS} == {f"loadgen:{__version__}"}


def published(tmp_path: Path, **env: str) -> dict[tuple[str, int], tuple[str, str]]:
    return {
        (name, port["target"]): (port["host_ip"], port["published"])
        for name, service in services(tmp_path, *PROFILES, **env).items()
        for port in service.get("ports", [])
    }


def test_ports_are_on_the_loopback_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    ports = published(tmp_path)
    assert ports == {
        ("influxdb", 8086): ("127.0.0.1", "8086"),
        ("grafana", 3000): ("127.0.0.1", "3000"),
        ("locust", 8089): ("127.0.0.1", "8089"),
        ("locust", 5557): ("127.0.0.1", "5557"),
        ("telemetry", 9467): ("127.0.0.1", "9467"),
        ("vllm", 8000): ("127.0.0.1", "8000"),
        ("llamacpp", 8001): ("127.0.0.1", "8001"),
    }
    other = published(tmp_path, BIND_ADDRESS="192.0.2.7", GRAFANA_PORT="3300")
    assert {where for where, _ in other.values()} == {"192.0.2.7"}
    assert other["grafana", 3000] == ("192.0.2.7", "3300")


def test_what_runs_on_has_a_health_check(tmp_path: Path) -> None:
    for name, service in services(tmp_path, *PROFILES).items():
        check = service["healthcheck"]
        assert check.get("test") or name == "worker", name  # a worker listens to nobody


def test_the_load_generator_has_few_rights_and_can_reach_the_host(tmp_path: Path) -> None:
    all_of_them = services(tmp_path, *PROFILES)
    for name in OURS:
        service = all_of_them[name]
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert "privileged" not in service, name
        assert service["uts"] == "host", name  # the `host` of results
    for name in OURS - {"telemetry"}:
        service = all_of_them[name]
        assert not service.keys() & {"user", "cap_add", "pid"}, name  # the image's ordinary user, and no more
        assert service["security_opt"] == ["no-new-privileges:true"], name
    for name in ("locust", "worker", "telemetry", "grafana"):
        assert all_of_them[name]["extra_hosts"] == ["host.docker.internal=host-gateway"], name


def test_the_gpu_sampler_sees_all_gpus_and_the_hosts_processes(tmp_path: Path) -> None:
    all_of_them = services(tmp_path, *PROFILES)
    sampler = all_of_them["telemetry"]
    assert sampler["gpus"] == [{"count": -1}]  # all
    assert sampler["pid"] == "host"
    # What it takes to read another user's /proc/PID/fd, and nothing else of root's rights.
    assert (sampler["user"], sampler["cap_drop"]) == ("0:0", ["ALL"])
    assert sampler["cap_add"] == ["SYS_PTRACE", "DAC_READ_SEARCH"]
    urls = services(tmp_path, "gpu", VLLM_URL="http://vllm:8000")["telemetry"]["environment"]
    assert (urls["VLLM_URL"], urls["LLAMACPP_URL"]) == ("http://vllm:8000", "")
    assert {name for name, s in all_of_them.items() if "gpus" in s} == {"telemetry", "vllm", "llamacpp"}
    assert {name for name, s in all_of_them.items() if "pid" in s} == {"telemetry"}


def test_data_lies_in_named_volumes(tmp_path: Path) -> None:
    whole = model(tmp_path, *PROFILES)
    mounted = {
        (name, mount["target"]): mount["source"]
        for name, service in whole["services"].items()
        for mount in service.get("volumes", [])
        if mount["type"] == "volume"
    }
    assert mounted == {
        ("influxdb", "/var/lib/influxdb2"): "influxdb-data",
        ("influxdb", "/etc/influxdb2"): "influxdb-config",
        ("grafana", "/var/lib/grafana"): "grafana-data",
        ("locust", "/srv/loadgen/runs"): "runs",
        ("worker", "/srv/loadgen/runs"): "runs",
        ("vllm", "/models"): "models",
        ("llamacpp", "/models"): "models",
    }
    assert set(whole["volumes"]) == set(mounted.values())


def test_what_is_mounted_from_here_is_here_and_read_only(tmp_path: Path) -> None:
    for name, service in services(tmp_path, *PROFILES).items():
        for mount in service.get("volumes", []):
            if mount["type"] == "bind":
                assert mount["read_only"], (name, mount)
                assert Path(mount["source"]).exists(), (name, mount)


def test_runs_may_lie_in_a_folder_of_the_host(tmp_path: Path) -> None:
    mounts = services(tmp_path, RUNS_DIR="./runs")["locust"]["volumes"]
    runs = next(m for m in mounts if m["target"] == "/srv/loadgen/runs")
    assert (runs["type"], runs["source"]) == ("bind", str(ROOT / "runs"))


def test_tokens_of_fewer_rights_take_the_place_of_the_one_that_may_do_all(tmp_path: Path) -> None:
    def tokens(**env: str) -> tuple[str, str, str]:
        s = services(tmp_path, **env)
        return (
            s["locust"]["environment"]["INFLUXDB_TOKEN"],
            s["grafana"]["environment"]["INFLUXDB_TOKEN"],
            s["influxdb"]["environment"]["DOCKER_INFLUXDB_INIT_ADMIN_TOKEN"],
        )

    assert tokens() == ("token-influx",) * 3
    assert tokens(INFLUXDB_WRITE_TOKEN="w", INFLUXDB_READ_TOKEN="r") == ("w", "r", "token-influx")


def test_a_token_is_no_process_argument(tmp_path: Path) -> None:
    for name, service in services(tmp_path, *PROFILES).items():
        for key in ("command", "entrypoint", "healthcheck", "labels"):
            assert not any(text in str(service.get(key)) for text in SECRETS.values()), (name, key)


def test_more_of_the_load_generators_flags_come_from_the_env_file(tmp_path: Path) -> None:
    base = ["locust", "-f", "locustfiles/concurrency.py", "--master", "--web-host", "0.0.0.0"]
    assert services(tmp_path)["locust"]["command"] == base
    asked = services(tmp_path, WORKLOAD="single_user", LOCUST_ARGS="-u 2 --blocks 6", LOCUST_CPUS="2,3")
    assert asked["locust"]["command"][6:] == ["-u", "2", "--blocks", "6"]
    for name in ("locust", "worker"):
        assert asked[name]["command"][2] == "locustfiles/single_user.py"
        assert asked[name]["cpuset"] == "2,3"


def test_workers_find_the_master_here_or_on_another_machine(tmp_path: Path) -> None:
    def command(**env: str) -> list[str]:
        found: list[str] = services(tmp_path, **env)["worker"]["command"]
        return found[found.index("--worker") :]

    assert command() == ["--worker", "--master-host", "locust"]
    # Which port is published on the host says nothing about the one inside.
    assert command(MASTER_PORT="6000") == command()
    there = ["--worker", "--master-host", "genhost", "--master-port"]
    assert command(MASTER_HOST="genhost") == [*there, "5557"]
    assert command(MASTER_HOST="genhost", MASTER_PORT="6000") == [*there, "6000"]


def test_there_may_be_any_number_of_workers(tmp_path: Path) -> None:
    assert services(tmp_path)["worker"].get("scale", 1) == 1
    assert services(tmp_path, WORKERS="8")["worker"]["scale"] == 8
    # Two containers of one service can have neither one name nor one port of the host.
    assert not services(tmp_path)["worker"].keys() & {"container_name", "ports", "hostname"}


def test_a_worker_has_the_engines_key_and_nothing_else_of_the_environment(tmp_path: Path) -> None:
    both = services(tmp_path, ENGINE_API_KEY="k", VLLM_URL="http://vllm:8000")
    assert both["worker"]["environment"] == {"ENGINE_API_KEY": "k"}
    assert both["locust"]["environment"]["ENGINE_API_KEY"] == "k"
    assert "loadgen.toml" not in str(both["worker"]["volumes"])  # the master tells what is measured
    for key in ("image", "ulimits", "extra_hosts", "stop_grace_period"):
        assert both["worker"][key] == both["locust"][key], key


def test_master_and_workers_are_stopped_together_and_requests_in_flight_may_finish(tmp_path: Path) -> None:
    """Compose stops what depends on something first, and waits for it."""
    both = services(tmp_path)
    for name in ("locust", "worker"):
        assert "depends_on" not in both[name], name
        # Locust's --stop-timeout is 120 s; a worker that hears nothing more goes 30 s later.
        assert both[name]["stop_grace_period"] == "2m40s"
    # Locust's answer to SIGTERM is to cut all streams; to SIGINT, loadgen's worker waits for its master.
    assert both["worker"]["stop_signal"] == "SIGINT"
    # A worker ends with its master, with or without an error, and is there for the next one.
    assert both["worker"]["restart"] == "unless-stopped"
