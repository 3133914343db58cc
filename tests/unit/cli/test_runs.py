"""`loadgen runs`: the list, its filters, and pruning."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import main
from loadgen.report import write_summary
from loadgen.store import RunDir, Suite
from tests.unit.slo.made import slow_run

Capture = pytest.CaptureFixture[str]
HOUR_NS = 3600 * 10**9


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*argv: str) -> int:
    return main(["runs", *argv])


def a_run(
    scenario: str = "concurrency", *, hours_ago: float = 1, model: str = "Qwen3-8B-FP8", **made: Any
) -> RunDir:
    values = {"engine": "vllm", **made}
    out = slow_run(Path("runs"), [[100.0] * 30], scenario=scenario, **values)
    manifest = out.manifest()
    manifest.start_ns = time.time_ns() - int(hours_ago * HOUR_NS)
    manifest.engines = [{"name": values["engine"], "model": model}]
    manifest.write(out.manifest_path)
    return out


def test_the_list(capsys: Capture) -> None:
    a_run(hours_ago=3)
    suite = Suite.create(Path("runs"))
    one = a_run("single_user", suite=suite, hours_ago=2, engine="a-name-that-is-longer-than-its-column")
    write_summary(one)
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["run", "state", "validity"]
    assert lines[2].split()[1:] == ["suite", "of", "1"]
    assert lines[3].split()[1:] == ["complete", "valid"]
    assert lines[4].split()[-5:] == ["100.0", "100.0", "10.0", "10.0", "0"]
    assert lines[5].endswith("valid")
    assert lines[6].split() == ["vllm", "100.0", "100.0", "10.0", "10.0", "0"]


def test_json_has_the_same_from_summary_json_as_from_the_journal(capsys: Capture) -> None:
    made = a_run()
    assert run("--json") == 0
    (journal,) = json.loads(capsys.readouterr().out)
    write_summary(made)
    assert run("--json") == 0
    (stored,) = json.loads(capsys.readouterr().out)
    assert stored == journal
    assert stored["engines"]["vllm"] == {
        "model": "Qwen3-8B-FP8",
        "simulated": False,
        "ttft_ms_p50": 100.0,
        "ttft_ms_p95": 100.0,
        "tpot_ms_p50": 10.0,
        "throughput_tokens_per_s": 10.0,
        "requests": 30,
        "failed": 0,
    }
    assert (stored["validity"], stored["scenario"], stored["suite"]) == ("valid", "concurrency", None)


@pytest.mark.parametrize("text", ["[]", "{}", '{"concurrency": {"vllm": {}}}', "{"])
def test_a_summary_that_can_not_be_used_is_made_anew(capsys: Capture, text: str) -> None:
    made = a_run()
    made.summary_path.write_text(text)
    assert run("--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["engines"]["vllm"]["ttft_ms_p50"] == 100.0


def test_of_a_large_run_without_a_summary_there_are_no_figures(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_run()
    monkeypatch.setattr("loadgen.report.overview.SMALL_BYTES", 1000)
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[1:] == ["complete", "-"]
    assert lines[3].split() == ["vllm", *["-"] * 5]


def test_a_run_that_goes_on_is_not_judged(capsys: Capture) -> None:
    a_run(state="running")
    assert run("--state", "running", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["state"], row["validity"]) == ("running", None)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        ([], 3),
        (["--scenario", "single_user"], 1),
        (["--engine", "llamacpp"], 1),
        (["--model", "qwen"], 2),
        (["--model", "QWEN", "--scenario", "concurrency"], 1),
        (["--state", "interrupted"], 1),
        (["--state", "killed"], 0),
        (["--since", "90m"], 1),
        (["--since", "7d"], 3),
        (["--since", "2020-01-01"], 3),
        (["--since", "2099-01-01T10:00"], 0),
        (["--limit", "2"], 2),
    ],
)
def test_filters(capsys: Capture, argv: list[str], found: int) -> None:
    a_run(hours_ago=1)
    a_run("single_user", hours_ago=2, engine="llamacpp")
    a_run(hours_ago=3, model="Llama-3.1-8B", state="interrupted")
    assert run("--json", *argv) == 0
    assert len(json.loads(capsys.readouterr().out)) == found
    assert run(*argv) == 0
    out = capsys.readouterr().out
    assert ("no run is like that" in out) == (found == 0)
    assert ("and 1 older: --limit 0 lists all" in out) == ("--limit" in argv)


def test_no_runs_yet(capsys: Capture) -> None:
    assert run() == 0
    assert "there are no runs in runs yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["prune"], "prune needs --keep N or --older-than WHEN"),
        (["--keep", "3"], "belong to `loadgen runs prune`"),
        (["--since", "soon"], "--since 'soon' is neither like 7d nor like 2026-11-30"),
        (["prune", "--keep", "-1"], "--keep"),
        (["prune", "--keep", "0"], "remove 1 run or suite ("),  # nobody to answer
    ],
)
def test_mistakes(capsys: Capture, argv: list[str], says: str) -> None:
    made = a_run()
    assert run(*argv) == 2
    assert says in capsys.readouterr().err
    assert made.path.exists()


class Person(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("Yes\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_prune_asks(capsys: Capture, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    new, old = a_run(), a_run(hours_ago=5)
    monkeypatch.setattr("sys.stdin", Person(answer))
    assert run("prune", "--keep", "1") == code
    assert (new.path.exists(), old.path.exists()) == (True, code == 1)
    out = capsys.readouterr()
    assert old.name in out.out
    assert ("removed 1 run or suite" in out.out) == (code == 0)
    assert ("nothing was removed" in out.err) == (code == 1)


def test_prune_with_filters_takes_suites_whole_or_not_at_all(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    inside = [a_run(s, suite=suite) for s in ("single_user", "concurrency")]
    at = time.time() - 4000
    for path in suite.path.rglob("*.json*"):
        os.utime(path, (at, at))
    alone, telemetry = a_run("single_user"), a_run("telemetry")
    assert run("prune", "--keep", "0", "--scenario", "single_user", "--yes") == 0
    assert [r.path.exists() for r in (*inside, alone, telemetry)] == [True, True, False, True]
    assert run("prune", "--older-than", "30m", "--yes") == 0
    assert [r.path.exists() for r in (*inside, telemetry)] == [False, False, False]
    capsys.readouterr()
    assert run("prune", "--keep", "0", "--yes") == 0
    assert "nothing to remove" in capsys.readouterr().out


def test_help_fits(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run("--help")
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
