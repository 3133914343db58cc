"""`loadgen summary`: what it prints, what it says of a person's mistake, and its exit code."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import summary
from loadgen.store import Suite
from tests.unit.report.made import make_run


def run(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    summary.add_arguments(parser)
    return summary.run(parser.parse_args(argv))


Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_json_of_latest(tmp_path: Path, capsys: Capture) -> None:
    make_run(tmp_path / "runs")
    assert run("latest", "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["concurrency"]["e"]["ttft_ms"]["p50"] == 200.0


def test_the_terminal_is_the_default(tmp_path: Path, capsys: Capture) -> None:
    name = make_run(tmp_path / "elsewhere").name
    assert run(name, "--runs-dir", "elsewhere") == 0
    assert "TTFT" in capsys.readouterr().out


def test_runs_dir_of_the_config_file(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "loadgen.toml").write_text('runs_dir = "there"\n')
    make_run(tmp_path / "there")
    assert run("latest", "--json") == 0


def test_damage_is_a_warning_beside_the_json(tmp_path: Path, capsys: Capture) -> None:
    made = make_run(tmp_path / "runs")
    made.journal_path.write_bytes(b"nonsense\n" + made.journal_path.read_bytes())
    assert run("latest", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)
    assert "warning: " in captured.err
    assert "1 line is damaged and left out (line 1)" in captured.err
    assert run("latest") == 0
    assert "1 line is damaged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nope"], "there is no run 'nope'; the newest in runs: "),
        (["latest", "--runs-dir", "empty"], "there are no runs in empty yet"),
        (["plain"], "plain is not a run directory"),
        (["file.txt"], "file.txt is a file"),
        (["runs/broken"], "manifest.json is damaged"),
        (["a\x1b[31mb"], "there is no run 'a\\x1b[31mb'"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_1(
    tmp_path: Path, capsys: Capture, argv: list[str], says: str
) -> None:
    make_run(tmp_path / "runs").path.rename(tmp_path / "runs" / "broken")
    (tmp_path / "runs" / "broken" / "manifest.json").write_text("{")
    for name in ("empty", "plain"):
        (tmp_path / name).mkdir()
    (tmp_path / "file.txt").touch()
    assert run(*argv) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("loadgen summary: ")
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_a_bad_config_file_is_one_sentence(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "loadgen.toml").write_text("runs_dir = [")
    assert run("latest") == 1
    assert "not valid TOML" in capsys.readouterr().err


def test_a_suite_without_runs_yet(tmp_path: Path, capsys: Capture) -> None:
    Suite.create(tmp_path / "runs")
    assert run() == 0
    assert "without runs yet" in capsys.readouterr().out


def test_write_and_parquet(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("pyarrow")
    made = make_run(tmp_path / "runs")
    assert run("latest", "--write", "--parquet", "--json") == 0
    assert json.loads(made.summary_path.read_text()) == json.loads(capsys.readouterr().out)
    assert made.requests_parquet.exists()
    assert made.chunk_events_parquet.exists()


def as_process(*argv: str, stdout: Any = subprocess.PIPE, **env: str) -> subprocess.Popen[bytes]:
    root = str(Path(summary.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-m", "loadgen.cli", "summary", *argv],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root, **env},
    )


def test_a_terminal_that_is_not_utf8(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    with as_process("latest", PYTHONIOENCODING="ascii") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"TTFT" in out


@pytest.mark.parametrize("flags", [["--json"], []])
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, flags: list[str]) -> None:
    make_run(tmp_path / "runs", engines=[{"name": f"e{n}"} for n in range(100)])  # more than a pipe holds
    with as_process("latest", *flags) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_a_full_disk_behind_standard_output_is_one_sentence(tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    with open("/dev/full", "w") as full, as_process("latest", stdout=full) as process:
        _, err = process.communicate()
    assert err.startswith(b"loadgen summary: the figures cannot be printed: No space left on device")
    assert b"Traceback" not in err
    assert process.returncode != 0
