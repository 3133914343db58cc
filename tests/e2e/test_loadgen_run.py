"""`loadgen run` and `loadgen engines`."""

from __future__ import annotations

import json

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.locust_run import run_loadgen


def test_one_workload(runs, both):
    run = run_loadgen(runs, "run", "single_user", *both, *SHORT, "--runs-dir", str(runs), "--duration", "5m")
    assert run.code == 0, run.err
    assert run.count("engine", "phase") == {
        (e, p): n for e in "ab" for p, n in (("warmup", 2), ("measure", 8))
    }
    assert "simulated engines" in run.out
    assert "run directory: " in run.err
    assert "locust.main" not in run.err, "people who don't know Locust don't see its log"
    assert "Aggregated" not in run.out + run.err


def test_the_suite_goes_on_past_a_workload_that_fails(runs, sim):
    small = sim("llamacpp", speed=20, context=1000, slots=1)  # too short for the prompts of long_prompt
    run = run_loadgen(runs, "run", "reference", *engine_flags(a=small), *SHORT, "--runs-dir", str(runs))
    assert run.code == 1
    assert "too few for 2000 prompt and 8 output tokens" in run.err
    suite = json.loads((runs / "latest" / "suite.json").read_text())
    assert [name.partition("_")[2] for name in suite["runs"]] == ["single_user", "concurrency"]
    assert "not without failures: long_prompt (exit code 1)" in run.err
    places = [line for line in run.err.splitlines() if "directory: " in line]
    assert len(places) == 3, "each run says once where it is, the suite at the end"
    assert places[-1].startswith("suite directory: ")


def test_mistakes_are_one_sentence(runs):
    run = run_loadgen(runs, "run", "sprint")
    assert run.code == 2
    assert "there is no workload 'sprint': take single_user, long_prompt, concurrency, " in run.err
    assert run_loadgen(runs, "run", "reference", "-u", "4").code == 2


def test_engines_table(runs, sims, both):
    run = run_loadgen(runs, "engines", *both)
    assert run.code == 0, run.err
    head, vllm, llamacpp = (line.split() for line in run.out.splitlines())
    assert head == ["name", "kind", "url", "server", "version", "model", "context", "slots", "simulated"]
    assert vllm[:3] == ["a", "vllm", sims[0].url]
    assert vllm[-1] == llamacpp[-1] == "yes"
    assert llamacpp[-2] == "4"


def test_engines_that_do_not_answer_are_rows_and_an_exit_code(runs, sims):
    run = run_loadgen(runs, "engines", *engine_flags(a=sims[0]), "--engine", "x=openai:http://127.0.0.1:9")
    assert run.code == 1
    assert "(unreachable)" in run.out
    assert "engine x: nothing listens at http://127.0.0.1:9" in run.err
