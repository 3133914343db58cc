"""`loadgen sweep` against simulated engines."""

from __future__ import annotations

import json
import signal

from loadgen.sweep.record import Sweep
from tests.e2e.conftest import engine_flags
from tests.support.locust_run import run_loadgen, start_loadgen

QUICK = ("--output-tokens", "8", "--cooldown", "0", "--warmup-requests", "1", "--gpu", "off")
SHORT = (*QUICK, "--turn-requests", "4", "--requests-per-user", "2")


def read(runs) -> Sweep:
    return Sweep.read(runs / "latest")


def test_a_sweep_finds_the_knee_of_a_server_with_two_slots(runs, sim):
    # A step takes 5 ms whatever the batch, so two slots give twice the throughput of one, and no more. The
    # margin is wide, since a busy machine adds to what it takes to send the next request; if it holds up the
    # turns of two users, the knee is seen one step later.
    a = sim("llamacpp", preset="llamacpp-fast", step_s=0.005, slots=2)
    flags = (*engine_flags(a=a), *QUICK, "--output-tokens", "20", "--margin", "20%")
    run = run_loadgen(runs, "sweep", "--to", "16", *flags, "--runs-dir", str(runs))
    assert run.code == 0, run.err
    sweep = read(runs)
    found = sweep.to_dict()["engines"]["a"]
    assert (sweep.state, found["stopped"]) == ("complete", "flat")
    assert found["knee"]["load"] in (2, 4)
    assert [s.load for s in sweep.steps] == [1, 2, 4, 8, 16][: len(sweep.steps)]
    names = [manifest(runs / "latest" / s.run)["scenario"] for s in sweep.steps]
    assert names == [f"concurrency_{s.load}" for s in sweep.steps], "each step is a scenario of its own"
    text = " ".join(run.out.split())
    assert f"a: knee at {found['knee']['load']} users" in text
    assert "simulated engines (a): this says nothing about real servers" in text
    assert run.err.count("engine a: ") == 1, "who is measured is said once"
    assert ", about " in run.err.split("[step 2]")[1].splitlines()[0]


def manifest(run):
    return json.loads((run / "manifest.json").read_text())


def test_each_engine_by_itself_against_an_slo(runs, sims, both):
    flags = (*both, *SHORT, "--users", "1,2,8", "--slo", "ttft_p95<10s,failures<=0", "--json")
    run = run_loadgen(runs, "sweep", *flags, "--runs-dir", str(runs))
    assert run.code == 0, run.err
    told = json.loads(run.out)
    assert told == read(runs).to_dict()
    assert [(s["load"], list(s["engines"])) for s in told["steps"]] == [(n, ["a", "b"]) for n in (1, 2, 8)]
    for engine in told["engines"].values():
        assert engine["stopped"] == "top"
        assert engine["slo"]["broken"] is None
    order = [e for e, _ in run_turns(runs / "latest" / told["steps"][0]["run"])]
    assert order == ["a", "b", "b", "a"]
    requests = [manifest(runs / "latest" / s["run"])["settings"]["turn_requests"] for s in told["steps"]]
    assert requests == [4, 4, 16]


def run_turns(run):
    lines = (run / "events.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    return [(e["engine"], e["complete"]) for e in events if e["kind"] == "turn_end"]


def test_an_slo_that_breaks_ends_the_raising(runs, sim):
    a = sim("vllm", preset="vllm-steady", overhead_s=0.05)
    flags = (*engine_flags(a=a), *SHORT, "--turn-requests", "40", "--slo", "ttft_p95<20ms", "--to", "8")
    run = run_loadgen(runs, "sweep", "--from", "4", *flags, "--runs-dir", str(runs))
    assert run.code == 0, run.err
    assert read(runs).to_dict()["engines"]["a"]["slo"] == {"within": None, "broken": 4}
    assert "no load is known to be within ttft_p95<20ms: 4 users break it" in " ".join(run.out.split())


def test_ctrl_c_keeps_what_there_is_and_it_is_resumed(runs, sims, both):
    flags = (*both, *SHORT, "--users", "1,2,4", "--runs-dir", str(runs))
    run = start_loadgen(runs, "sweep", *flags)
    run.wait_for(lambda _: (runs / "latest" / "sweep.json").exists() and len(read(runs).steps) == 1)
    run.send(signal.SIGINT)
    run.wait()
    assert run.code == 130, run.err
    assert "to go on: loadgen sweep --resume" in run.err
    assert "a (simulated)" in run.out, "what there is is shown"
    before = read(runs)
    assert before.state == "interrupted"
    assert 1 <= len(before.steps) < 3
    again = run_loadgen(runs, "sweep", "--resume", "--runs-dir", str(runs))
    assert again.code == 0, again.err
    after = read(runs)
    assert [s.load for s in after.steps] == [1, 2, 4]
    assert after.steps[: len(before.steps)] == before.steps, "nothing is measured twice"
    assert after.state == "complete"


def test_no_engine_is_no_sweep(runs):
    run = run_loadgen(runs, "sweep", "--engine", "x=openai:http://127.0.0.1:9", "--runs-dir", str(runs))
    assert run.code == 1
    assert "engine x: nothing listens at http://127.0.0.1:9" in run.err
    assert "Traceback" not in run.err
    assert not [p for p in runs.iterdir() if p.is_dir()], "no empty suite is left"


def test_an_engine_whose_requests_fail_drops_out(runs, sim):
    a = sim("vllm", preset="vllm-fast")
    b = sim("vllm", preset="vllm-fast", fault=["503"])
    flags = (*engine_flags(a=a, b=b), *SHORT, "--users", "1,2", "--runs-dir", str(runs))
    run = run_loadgen(runs, "sweep", *flags)
    sweep = read(runs)
    assert run.code == 0, run.err
    assert sweep.to_dict()["engines"]["b"]["stopped"] == "failing"
    assert [list(s.engines) for s in sweep.steps] == [["a", "b"], ["a"]]
