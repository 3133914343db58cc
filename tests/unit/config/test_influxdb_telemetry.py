"""Where results go and what is watched: addresses, tokens, precedence."""

from pathlib import Path

import pytest

from loadgen.config import ConfigError, InfluxdbSpec, TelemetrySpec, load_settings


def settings(tmp_path: Path, text: str = "", env: dict[str, str] | None = None, **flags: object):
    file = tmp_path / "loadgen.toml"
    file.write_text(text)
    return load_settings(flags, env=env or {}, config_file=file)


def test_nothing_is_delivered_unless_an_address_is_given(tmp_path: Path) -> None:
    assert settings(tmp_path).influxdb.url is None
    # An empty variable, as Compose passes on what is not set, is none.
    assert settings(tmp_path, env={"INFLUXDB_URL": ""}).influxdb.url is None


def test_the_environment_overrides_the_file_key_by_key(tmp_path: Path) -> None:
    text = '[influxdb]\nurl = "http://db:8086"\norg = "lab"\nbucket = "runs"\n'
    spec = settings(
        tmp_path, text, {"INFLUXDB_BUCKET": "other", "INFLUXDB_URL": "https://db2/influx/"}
    ).influxdb
    assert (spec.url, spec.org, spec.bucket) == ("https://db2/influx", "lab", "other")


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"INFLUXDB_URL": "db:8086"}, "INFLUXDB_URL: url: 'db:8086' is not an address"),
        ({"INFLUXDB_URL": "http://db:x"}, "port"),
        ({"INFLUXDB_URL": "http://me:secret@db:8086"}, "keys do not belong in the address"),
        ({"INFLUXDB_URL": "http://[::1"}, r"'http://\[::1' is not an address"),
        ({"INFLUXDB_URL": "http://my db:8086"}, "'http://my db:8086' is not an address"),
        ({"INFLUXDB_URL": "http://db:8086/a\n/x"}, "is not an address"),
        ({"INFLUXDB_URL": "db", "INFLUXDB_BUCKET": "b", "INFLUXDB_ORG": "o"}, "^INFLUXDB_URL: url: 'db' is"),
    ],
)
def test_a_bad_address_is_a_sentence(tmp_path: Path, env: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        settings(tmp_path, env=env)


def test_space_around_an_address_is_not_part_of_it(tmp_path: Path) -> None:
    made = settings(tmp_path, env={"INFLUXDB_URL": " http://db:8086/ \n", "VLLM_URL": "http://gpu:8000\r"})
    assert made.influxdb.url == "http://db:8086"
    assert made.engines[0].url == "http://gpu:8000"


@pytest.mark.parametrize("url", ["http://db:8086?token=hush", "http://db:8086#hush", "ftp://me:hush@db"])
def test_a_key_in_a_refused_address_is_not_repeated(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings(tmp_path, env={"INFLUXDB_URL": url})
    assert "hush" not in str(error.value)


def test_a_token_comes_from_its_variable_then_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    spec = InfluxdbSpec(url="http://db:8086", token_file=file)
    assert spec.token({"INFLUXDB_TOKEN": "from-env"}) == "from-env"
    assert spec.token({}) == "from-file"
    with pytest.raises(ConfigError, match="set the environment variable INFLUXDB_TOKEN"):
        InfluxdbSpec(url="http://db:8086").token({})
    file.write_text(" \n")
    with pytest.raises(ConfigError, match=r"token file .* is empty"):
        spec.token({})
    with pytest.raises(ConfigError, match=r"token file .* cannot be read: No such file"):
        InfluxdbSpec(token_file=tmp_path / "gone").token({})


def test_no_token_is_in_what_the_manifest_gets(tmp_path: Path) -> None:
    made = settings(tmp_path, env={"INFLUXDB_URL": "http://db:8086", "INFLUXDB_TOKEN": "hush-hush"})
    assert "hush-hush" not in str(made.public_dict())


def test_telemetry_is_automatic_and_its_lists_are_checked(tmp_path: Path) -> None:
    spec = settings(tmp_path, "[telemetry]\ngpus = [1, 0, 1]\n").telemetry
    assert (spec.gpu, spec.gpus, spec.interval_s) == ("auto", (0, 1), 1.0)
    with pytest.raises(ConfigError, match="numbered from 0"):
        settings(tmp_path, telemetry={"gpus": ("-1",)})
    with pytest.raises(ConfigError, match="not an address"):
        settings(tmp_path, telemetry={"agents": ("gpuhost",)})
    assert TelemetrySpec(agents=("http://gpu:9467/",)).agents == ("http://gpu:9467",)


def test_agents_come_from_the_environment_too(tmp_path: Path) -> None:
    text = '[telemetry]\nagents = ["http://gpu0:9467"]\ngpu = "off"\n'
    env = {"LOADGEN_TELEMETRY_AGENTS": "http://gpu1:9467, http://gpu2:9467/"}
    spec = settings(tmp_path, text, env).telemetry
    assert spec.agents == ("http://gpu1:9467", "http://gpu2:9467")
    assert spec.gpu == "off"
    assert settings(tmp_path, text, {"LOADGEN_TELEMETRY_AGENTS": ""}).telemetry.agents == (
        "http://gpu0:9467",
    )
    with pytest.raises(ConfigError, match=r"LOADGEN_TELEMETRY_AGENTS: agents: 'gpu1' is not an address"):
        settings(tmp_path, env={"LOADGEN_TELEMETRY_AGENTS": "gpu1"})
