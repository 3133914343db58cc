from __future__ import annotations

import json

import pytest

from loadgen.cli import main
from loadgen.plan import Cost, Load, plan_for

EXAMPLE = ("plan", "--concurrency", "2000", "--tokens-per-second", "40")


def test_the_plan_as_json_is_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXAMPLE, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    plan = plan_for(Load(2000, 40.0), Cost.default())
    assert whole["plan"]["workers"] == plan.workers
    assert whole["plan"]["load"]["events_per_s"] == 80_000
    assert whole["cost"] == Cost.default().to_dict()
    assert set(whole["machine"]) == {"cores", "memory_mb", "descriptors", "ports"}
    assert isinstance(whole["lacks"], list)


def test_the_plan_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EXAMPLE, "--output-tokens", "512"]) == 0
    out = capsys.readouterr().out
    assert "2,000 streams of 40 tokens/s: 80,000 events/s" in out
    assert "(512 tokens an answer, the first after 0.5 s, one event a token)" in out
    assert "--processes " in out


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("-u", "0"), "--concurrency 0 must be greater than 0"),
        (("-u", "1.5"), "--concurrency '1.5' is not a whole number"),
        (("--tokens-per-second", "nan"), "--tokens-per-second nan must be"),
        (("--tokens-per-second", "1e309"), "--tokens-per-second 1e309 must be"),
        (("--output-tokens", "-1"), "--output-tokens -1 must be"),
        (("--busy", "101%"), "a worker has one core"),
        (("--busy", "much"), "--busy 'much' is not a number"),
    ],
)
def test_a_mistake_is_one_sentence(
    flags: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*EXAMPLE, *flags]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_an_open_loop_is_planned_by_its_rate(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--rate", "50", "--tokens-per-second", "40", "--ttft", "1", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert plan["load"]["requests_per_s"] == 50
    assert plan["load"]["concurrency"] == 370  # 50 a second, 1 + 256 / 40 s each
    assert main([*EXAMPLE, "--rate", "8"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err
