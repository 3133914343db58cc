"""Mistakes of a person: one clear sentence, before any load is sent, and an exit code that is not 0."""

from __future__ import annotations

import sys

import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.locust_run import ROOT, LocustRun, run_locust

DEAD = "http://127.0.0.1:9"  # the discard port: nothing listens there


def sentence(run) -> str:
    assert run.code not in (0, None)
    assert "Traceback" not in run.err
    assert not run.runs_dir.exists(), "no load was sent, so there is no run"
    ours = [line for line in run.err.splitlines() if line.startswith("loadgen: ")]
    assert len(ours) == 1, run.err
    return ours[0]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--engine", f"x=vllm:{DEAD}"), "engine x: nothing listens at http://127.0.0.1:9"),
        (("--engine", "x=vlm:http://127.0.0.1:9"), "is not NAME=KIND:URL"),
        (("--engine", f"vllm:{DEAD}", "--engine", f"vllm:{DEAD}"), "two engines are called 'vllm'"),
        (("-u", "0"), "-u: "),
        (("--turn-requests", "0"), "--turn-requests: "),
        (("--first-token-timeout", "-1"), "--first-token-timeout: "),
        (("--residency", "exclusive"), "exclusive residency needs a start command"),
        (("--prompt-file", "/nowhere.jsonl"), "the prompt file /nowhere.jsonl cannot be read"),
        (("--loadgen-config", "/nowhere.toml"), "/nowhere.toml does not exist"),
        (("--host", "http://gpu:8000"), "name each server with --engine NAME=KIND:URL"),
        (("--processes", "2"), "no engine answers at http://127.0.0.1:8000"),
        (("--tags", "x"), "a workload is one task without tags"),
    ],
    ids=lambda v: " ".join(v[:1]) if isinstance(v, tuple) else "",
)
def test_flags(runs, flags, says):
    assert says in sentence(run_locust(runs, *flags))


@pytest.mark.parametrize(
    ("options", "flags", "says"),
    [
        ({"loading": 60}, (), "is not ready yet"),
        ({}, ("--prompt-tokens", "9000"), "too few for 9000 prompt and 8 output tokens"),
        ({}, ("--prompt-tokens", "20"), "prompts of 20 tokens are not possible here"),
    ],
    ids=["loading", "context", "template"],
)
def test_engines_that_cannot_do_the_run(runs, sim, options, flags, says):
    one = sim("llamacpp", **options)
    run = run_locust(runs, *engine_flags(x=one), *SHORT, *flags)
    assert says in sentence(run)
    assert not [r for r in one.log_records() if r.get("path", "").endswith("completions")]


def test_another_model_than_asked(runs, sims, tmp_path):
    config = tmp_path / "loadgen.toml"  # read from the working directory
    config.write_text(f'[engines.x]\nkind = "vllm"\nurl = "{sims[0].url}"\nmodel = "gpt-99"\n')
    assert "not gpt-99" in sentence(run_locust(runs, *SHORT))


def test_several_workloads_at_once(runs):
    command = [sys.executable, "-m", "locust", "-f", str(ROOT / "locustfiles"), "--headless"]
    said = sentence(LocustRun(command, runs).wait())
    assert "one run is one workload" in said
    assert "loadgen run reference" in said


def test_an_unknown_user_class_is_locusts_own_to_refuse(runs):
    run = run_locust(runs, "Nobody")
    assert run.code == 1
    assert "Unknown User(s): Nobody" in run.err


def test_help_shows_flags_with_the_defaults_of_the_workload_and_the_file(runs, tmp_path):
    (tmp_path / "loadgen.toml").write_text("blocks = 17\n[engines.mine]\nkind='vllm'\nurl='http://h:1'\n")
    # As Python does with the start-up files of installed packages.
    startup = (
        f"import site; site.addsitedir({str(ROOT / 'loadgen' / 'startup')!r}); "
        "import runpy; runpy.run_module('locust', run_name='__main__')"
    )
    (tmp_path / "locust").write_text(startup)
    file = str(ROOT / "locustfiles" / "long_prompt.py")
    run = LocustRun([sys.executable, str(tmp_path / "locust"), "-f", file, "--help"], runs).wait()
    assert run.code == 0, run.err
    words = " ".join(run.out.split())
    assert "--engine NAME=KIND:URL" in words
    assert "requests of each. Default: 2000" in words
    assert "(6 or more to compare). Default: 17" in words
    assert "mine=vllm:http://h:1" in words
