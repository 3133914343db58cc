import pytest

from loadgen.cli import COMMANDS, main
from loadgen.cli.engines import table
from loadgen.cli.run import for_locust, locustfile
from loadgen.config import ConfigError, EngineSpec
from loadgen.engines import EngineError, EngineInfo
from loadgen.workload.scenarios import SCENARIOS


@pytest.mark.parametrize(
    ("given", "locusts"),
    [
        (["-u", "4", "-t", "9"], ["-u", "4", "-t", "9"]),
        (["--duration", "5m"], ["--run-time", "5m"]),
        (["--duration=1h", "--csv", "a"], ["--run-time=1h", "--csv", "a"]),
        (["--config", "my.toml"], ["--loadgen-config", "my.toml"]),
        (["--blocks", "3"], ["--blocks", "3"]),
    ],
)
def test_flags_in_locusts_words(given, locusts):
    assert for_locust(given) == locusts


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_workload_has_its_locustfile(name):
    text = locustfile(name).read_text()
    assert f"scenario = {name.upper()}" in text


def test_a_locustfile_of_ones_own():
    assert str(locustfile("mine/chatty.py")) == "mine/chatty.py"
    with pytest.raises(ConfigError, match="there is no workload 'chatty'"):
        locustfile("chatty")


def test_help_teaches(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for word in ("loadgen sim", "loadgen run concurrency", "VLLM_URL", "loadgen summary latest"):
        assert word in text


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        main([*command.split(), "--help"])
    assert left.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"usage: loadgen {command}".rstrip())
    assert [line for line in lines if len(line) > 80] == []


def rows(width):
    spec = EngineSpec(name="a", kind="llamacpp", url="http://127.0.0.1:8001")
    info = EngineInfo(
        "a", "llamacpp", spec.url, "llama.cpp", version="b1", model="[red]x", context=4096, slots=4
    )
    return table([(spec, info), (spec, EngineError("gone", "unreachable"))], width)


def test_a_narrow_terminal_gets_a_column_an_engine():
    assert len(rows(None).columns) == 9
    assert rows(None).row_count == 2
    assert len(rows(60).columns) == 3
    assert rows(60).row_count == 9


def test_what_servers_say_is_no_markup():
    cells = [str(c) for column in rows(None).columns for c in column.cells]
    assert "[red]x" in cells
    assert "(unreachable)" in cells
