"""`loadgen sweep`: its flags, what it passes on, what it prints; the runs themselves are in tests/e2e."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from loadgen import cli
from loadgen.cli import sweep as command
from loadgen.store import Suite
from loadgen.sweep.arguments import parse_margin, parse_users
from loadgen.sweep.plan import Plan, Step
from loadgen.sweep.record import Sweep
from tests.unit.sweep.made import VOID, figures, sweep

Capture = pytest.CaptureFixture[str]
ENGINE = ("--engine", "a=vllm:http://127.0.0.1:9")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("VLLM_URL", "LLAMACPP_URL"):
        monkeypatch.delenv(name, raising=False)


def asked(*argv: str) -> Sweep:
    """The sweep that these flags ask for, never started."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    command.add_arguments(parser)
    args, _ = parser.parse_known_args(argv)
    args.argv = list(argv)
    own, rest = command._own(args.argv)
    made = command._new(args, rest)
    made.asked_engines = own.engine or []
    return made


def test_without_flags() -> None:
    made = asked()
    assert made.plan == Plan((1, 2, 4, 8, 16, 32, 64, 128, 256), margin=1.05)
    assert (made.workload, made.blocks, made.turn_requests, made.requests_per_user) == (
        "concurrency",
        2,
        8,
        4,
    )
    assert made.flags == []


def test_the_flags_of_a_sweep_and_those_of_its_runs() -> None:
    argv = [*("--from", "4", "--to", "20", "--margin", "10%", "--refine", "1", "--all"), *ENGINE]
    argv += ["--blocks", "6", "--requests-per-user", "2"]
    Path("x.toml").touch()
    made = asked(*argv, "--config", "x.toml", "--duration=5m", "--csv", "out")
    assert made.plan == Plan((4, 8, 16, 20), margin=1.1, refine=1, stop=False)
    assert (made.blocks, made.requests_per_user) == (6, 2)
    assert made.flags == ["--loadgen-config", "x.toml", "--run-time=5m", "--csv", "out"]
    assert command.step_command(made, Step(4, ()))[3:] == [
        *("run", "concurrency", "--loadgen-config", "x.toml", "--run-time=5m", "--csv", "out"),
        *("--users", "4", "--turn-requests", "8", "--blocks", "6", *ENGINE),
    ]
    made.engines = {"a": "a=vllm:http://h:1", "b": "b=llamacpp:http://h:2"}
    assert command.step_command(made, Step(16, ("b",)))[-2:] == ["--engine", "b=llamacpp:http://h:2"]
    assert command.step_command(made, Step(16, ("b",))).count("--engine") == 1


def test_an_slo_needs_samples_and_its_edge_is_searched() -> None:
    made = asked("--slo", "ttft_p95<500ms,goodput>0.9", "--slo", "ttft_p95<400ms")
    assert made.slo == ["ttft_p95<500ms,goodput>0.9", "ttft_p95<400ms"]
    assert (made.plan.slo, made.plan.refine) == (True, 2)
    assert made.turn_requests == 36, "72 samples in two turns"
    assert asked("--slo", "ttft_p95<500ms", "--turn-requests", "10").turn_requests == 10


def test_the_file_is_heeded(tmp_path: Path) -> None:
    (tmp_path / "loadgen.toml").write_text("blocks = 4\noutput_tokens = 32\n")
    assert asked().blocks == 4


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("--users 1,x", "--users '1,x' is no list of steps: write it as 1,2,4,8,16"),
        ("--users 0,1", "is no list of steps"),
        ("--users 1,2 --to 4", "--users names every step: leave --from and --to away"),
        ("--from 8 --to 4", "--from 8 is beyond --to 4"),
        ("--from 0", "--from 0: take a whole number from 1 to 100,000"),
        ("--duration 0", "--duration '0' is no time: write it as 90s, 20m or 1h30m"),
        ("-t 1x", "--duration '1x' is no time"),
        ("--rates 1,nan --arrival poisson", "--rates '1,nan' is no list of rates: write it as 1,2,4,8"),
        ("--rates 1e-9 --arrival poisson", "is no list of rates"),
        ("--rates 4 --rate 3 --arrival poisson", "--rates names every step's rate: leave --rate away"),
        ("--rates 4 --rate=3 --arrival poisson", "leave --rate away"),
        ("--rates 4 --users 3", "an open loop has no users"),
        ("--arrival poisson --rate 4", "name the steps with --rates 1,2,4"),
        ("--workload long_prompt --prompt-tokens 50,80", "several prompt lengths are measured by one user"),
        ("--refine -1", "--refine -1: take a whole number from 0"),
        ("--margin 0", "--margin '0' is no margin"),
        ("--margin five", "--margin 'five' is no margin"),
        ("--slo ttft<", "'ttft<' is no objective"),
        ("--workload sprint", "there is no workload 'sprint'"),
        ("--engine x", "--engine 'x' is not NAME=KIND:URL"),
        ("--prompt-tokens 0", "--prompt-tokens"),
        ("--resume --to 4", "has its flags already"),
        ("--show latest --engine a=vllm:http://h:1", "has its flags already"),
    ],
)
def test_mistakes_are_one_sentence(argv: str, says: str, capsys: Capture, tmp_path: Path) -> None:
    assert cli.main(["sweep", *argv.split()]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.startswith("loadgen sweep: ")
    assert err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("argv", [["--resume"], ["--show", "nope"]])
def test_no_such_sweep(argv: list[str], capsys: Capture) -> None:
    assert cli.main(["sweep", *argv]) == 1
    assert "there is no " in capsys.readouterr().err


def test_lists_and_margins() -> None:
    assert parse_users("8, 1,2,2") == (1, 2, 8)
    assert (parse_margin("5%"), parse_margin(" 2.5 ")) == (1.05, 1.025)


@pytest.fixture
def shown(tmp_path: Path) -> Sweep:
    curve = {
        1: figures(50.0, 40.0, slo="met", slo_sentences=["fine"]),
        2: figures(
            100.0, 60.0, slo="not decidable", slo_sentences=["few"], failed=3, failed_by_kind={"x": 3}
        ),
        4: figures(180.0, 900.0, slo="not met", slo_sentences=["900 ms"], simulated=True),
        8: figures(190.0, 999.0, slo="not decidable", slo_sentences=[], validity="void", findings=VOID),
    }
    made = sweep(
        curve, name="a\x1b[31m", plan=Plan((1, 2, 4, 8), slo=True, stop=False), slo=["ttft_p95<500ms"]
    )
    made.name = "2026_sweep"
    made.state = "complete"
    made.write(Suite.create(tmp_path / "runs", "sweep").path)
    return made


def test_it_is_shown_again(shown: Sweep, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["sweep", "--show"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert [line for line in out.splitlines() if len(line) > 80] == []
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert [r for r in rows if r.split(" ")[0] in ("1", "2", "4", "8")][:4] == [
        "1 50.0 20.0 40.0 20.0 40.0 20.0 yes",
        "2 100.0 +100 % 30.0 60.0 30.0 60.0 30.0 ? 3 failed",
        "4 180.0 +80 % 450.0 900.0 450.0 900.0 450.0 no",
        "8 190.0 +6 % 499.5 999.0 499.5 999.0 499.5 ? void",
    ]
    text = " ".join(out.split())
    assert "simulated engines (a?[31m): this says nothing about real servers" in text
    assert "the highest load within ttft_p95<500ms is 1 user (50.0 tok/s); 4 users break it (900 ms)" in text
    assert "a?[31m, 8 users: void (generator): the generator was busy" in text
    assert "throughput, tok/s    o a?[31m" in out


def test_the_same_as_json(shown: Sweep, capsys: Capture) -> None:
    assert cli.main(["sweep", "--show", "latest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == shown.to_dict()
