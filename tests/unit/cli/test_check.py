"""`loadgen check`: its exit codes, which a pipeline relies on, and what it prints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadgen import exitcodes
from loadgen.cli import check, main
from loadgen.store import Suite
from tests.unit.slo.made import slow_run

Capture = pytest.CaptureFixture[str]
QUICK = [[100.0] * 80]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*argv: str) -> int:
    return main(["check", *argv])


def test_the_codes_are_the_documented_ones() -> None:
    codes = (exitcodes.MET, exitcodes.NOT_MET, exitcodes.NOT_DECIDABLE, exitcodes.CANNOT_CHECK)
    assert codes == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("slo", "code", "says"),
    [
        ("ttft_p95<500ms", 0, "result: met"),
        ("ttft_p95<50ms", 1, "result: not met"),
        ("ttft_p99<500ms", 2, "result: not decidable"),
        ("ttft_p99<500ms,ttft_p95<50ms", 1, "result: not met"),
        ("interactive,ttft_p99<500ms", 2, "result: not decidable"),
    ],
)
def test_answers(capsys: Capture, slo: str, code: int, says: str) -> None:
    slow_run(Path("runs"), QUICK)
    assert run("--slo", slo) == code
    out = capsys.readouterr().out
    assert says in out
    assert "ttft_p9" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "no objective: give one"),
        (["--slo", "ttft<1"], "is a limit for single requests"),
        (["--slo", "interactive", "--engine", "x"], "has no engine 'x'"),
        (["--slo", "interactive", "--scenario", "x"], "has no run of the scenario 'x'"),
        (["nope", "--slo", "interactive"], "there is no run 'nope'"),
        (["--bad"], "unrecognized arguments: --bad"),
    ],
)
def test_mistakes_have_a_code_of_their_own(capsys: Capture, argv: list[str], says: str) -> None:
    slow_run(Path("runs"), QUICK)
    assert run(*argv) == exitcodes.CANNOT_CHECK
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert "Traceback" not in captured.err


def test_a_suite_without_runs_and_a_damaged_manifest(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    assert run("--slo", "interactive") == exitcodes.CANNOT_CHECK
    assert "without runs yet" in capsys.readouterr().err
    made = slow_run(Path("runs"), QUICK, suite=suite)
    made.manifest_path.write_text("{")
    assert run("--slo", "interactive") == exitcodes.CANNOT_CHECK
    assert "manifest.json is damaged" in capsys.readouterr().err


def test_our_own_mistake_is_no_answer(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_run(Path("runs"), QUICK)
    monkeypatch.setattr("loadgen.slo.check.judge", lambda *a: 1 / 0)
    assert run("--slo", "interactive") == exitcodes.CANNOT_CHECK
    assert "ZeroDivisionError" in capsys.readouterr().err


def failing(n: int, of: int = 80) -> Any:
    """A run in which n requests failed."""
    made = slow_run(Path("runs"), [[100.0] * of])
    lines = made.journal_path.read_bytes().splitlines(keepends=True)
    for k in range(n):
        lines[k] = lines[k].replace(b'"outcome":"ok"', b'"outcome":"failed","error":"http_500"')
    made.journal_path.write_bytes(b"".join(lines))


def test_a_void_run_decides_nothing_but_that_requests_failed(capsys: Capture) -> None:
    failing(20, 100)
    assert run("--slo", "ttft_p95<500ms") == exitcodes.NOT_DECIDABLE
    out = capsys.readouterr().out
    assert "the run is void, so it decides nothing" in out
    assert "20 requests of 100 failed (20.0 %)" in out
    assert run("--slo", "ttft_p95<50ms") == exitcodes.NOT_DECIDABLE
    assert run("--slo", "failures<5%") == exitcodes.NOT_MET
    assert run("--slo", "failures<50%") == exitcodes.NOT_DECIDABLE


def test_a_suspect_run_decides_unless_strict(capsys: Capture) -> None:
    failing(1)
    assert run("--slo", "ttft_p95<500ms") == exitcodes.MET
    assert "the run is suspect\n" in capsys.readouterr().out
    assert run("--slo", "ttft_p95<500ms", "--strict") == exitcodes.NOT_DECIDABLE
    assert "the run is suspect, so it decides nothing" in capsys.readouterr().out


def test_a_run_that_was_cut_is_judged_by_its_complete_turns(capsys: Capture) -> None:
    slow_run(Path("runs"), [[100.0] * 80, [900.0] * 20], state="interrupted", complete=[True, False])
    assert run("--slo", "ttft_p95<500ms") == exitcodes.MET
    out = " ".join(capsys.readouterr().out.split())
    assert "the run was cut short, or still goes on: judged by 1 complete turn of e; what was" in out
    assert "measured of the turn cut short does not count" in out
    assert run("--slo", "ttft_p95<500ms", "--json") == exitcodes.MET
    assert json.loads(capsys.readouterr().out)["runs"][0]["cut"].startswith("the run was cut short")


def test_a_cut_turn_that_took_too_long_makes_the_run_suspect(capsys: Capture) -> None:
    slow_run(Path("runs"), [[100.0] * 80, [100.0] * 120], state="interrupted", complete=[True, False])
    assert run("--slo", "ttft_p95<500ms") == exitcodes.MET
    assert "a turn that was cut short had already lasted" in capsys.readouterr().out
    assert run("--slo", "ttft_p95<500ms", "--strict") == exitcodes.NOT_DECIDABLE


def test_without_a_complete_turn_nothing_is_met(capsys: Capture) -> None:
    slow_run(Path("runs"), [[100.0] * 80], state="interrupted", complete=[False])
    assert run("--slo", "ttft_p95<500ms") == exitcodes.NOT_DECIDABLE
    assert "judged by 0 complete turns of e" in " ".join(capsys.readouterr().out.split())


def test_suites_engines_and_json(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    slow_run(Path("runs"), QUICK, suite=suite, scenario="single_user", engine="a")
    slow_run(Path("runs"), [[700.0] * 80], suite=suite, scenario="concurrency", engine="b")
    assert run("--slo", "interactive", "--json") == exitcodes.NOT_MET
    out = json.loads(capsys.readouterr().out)
    assert out["answer"] == "not met"
    assert [(r["scenario"], r["answer"]) for r in out["runs"]] == [
        ("single_user", "met"),
        ("concurrency", "not met"),
    ]
    assert out["runs"][0]["validity"]["level"] == "valid"
    (one,) = out["runs"][1]["engines"]["b"]["objectives"]
    assert (one["objective"], one["answer"], one["value"]) == ("ttft_p95<500ms", "not met", 700.0)
    assert run("--slo", "interactive", "--scenario", "single_user") == exitcodes.MET
    assert run("--slo", "interactive", "--engine", "b", "--scenario", "concurrency") == exitcodes.NOT_MET


def test_a_run_of_a_suite_that_is_gone_is_not_met(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    slow_run(Path("runs"), QUICK, suite=suite, scenario="single_user")
    lost = slow_run(Path("runs"), QUICK, suite=suite, scenario="concurrency")
    assert run("--slo", "interactive") == exitcodes.MET
    shutil.rmtree(lost.path)
    assert run("--slo", "interactive", "--json") == exitcodes.NOT_DECIDABLE
    captured = capsys.readouterr()
    assert f"the suite's run {lost.name} is gone" in captured.err
    assert f'"missing": [\n    "{lost.name}"' in captured.out
    assert run("--slo", "interactive", "--scenario", "single_user") == exitcodes.MET


def test_a_traffic_class_by_itself(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    slow_run(Path("runs"), QUICK, suite=suite, scenario="single_user")
    made = slow_run(Path("runs"), [[100.0] * 80 + [900.0] * 80], suite=suite, scenario="mixed")
    lines = made.journal_path.read_bytes().splitlines()
    for n, line in enumerate(lines):
        name = b"chat" if n < 80 else b"batch"
        lines[n] = line.replace(b"{", b'{"traffic_class":"%s",' % name, 1)
    made.journal_path.write_bytes(b"\n".join(lines) + b"\n")
    mixed = ("--scenario", "mixed", "--slo", "interactive")
    assert run(*mixed) == exitcodes.NOT_MET
    assert run(*mixed, "--class", "chat") == exitcodes.MET
    assert "mixed: chat" in capsys.readouterr().out
    assert run(*mixed, "--class", "batch") == exitcodes.NOT_MET
    assert run(*mixed, "--class", "x") == exitcodes.CANNOT_CHECK
    assert "has no traffic class 'x': it has chat, batch" in capsys.readouterr().err
    assert run("--scenario", "single_user", "--slo", "interactive", "--class", "x") == exitcodes.CANNOT_CHECK
    assert "has no traffic class 'x': its requests are of one kind" in capsys.readouterr().err


def test_a_simulated_engine_is_called_so(capsys: Capture) -> None:
    made = slow_run(Path("runs"), QUICK)
    manifest = made.manifest()
    manifest.engines = [{"name": "e", "simulated": True}]
    manifest.write(made.manifest_path)
    assert run("--slo", "interactive") == exitcodes.MET
    assert "e (simulated: this says nothing about real servers)" in capsys.readouterr().out


def test_help_fits_and_names_every_preset(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("--help")
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert all(name in out for name in check.PRESETS)
