"""Workers that are lost, come late or cannot take part."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.e2e.test_workers import in_order
from tests.support.cluster import Cluster, children
from tests.support.locust_run import start_locust

STEADY = ("--warmup-requests", "0", "--cooldown", "0", "-u", "4", "--output-tokens", "32")


def busy_in_turn(turn, at_least=8):
    return lambda r: len([x for x in r.records if x["turn"] == turn]) >= at_least


def test_a_killed_worker_costs_its_turn_and_the_run_goes_on(runs, sim):
    a, b = sim("vllm", speed=2), sim("llamacpp", speed=4)
    run = start_locust(
        runs,
        "--headless",
        *engine_flags(a=a, b=b),
        *STEADY,
        *("--turn-requests", "48", "--blocks", "2", "--processes", "2"),
    )
    run.wait_for(busy_in_turn(0))
    os.kill(children(run)[0], signal.SIGKILL)
    run.wait()
    assert run.code == 0, run.err
    assert run.manifest["state"] == "complete"
    assert run.turns() == [("a", False), ("b", True), ("b", True), ("a", True)]
    (lost,) = (e for e in run.events if e["kind"] == "worker_lost")
    assert lost["records"] >= 1
    (facts,) = (w for w in run.manifest["workers"] if w.get("lost"))
    assert (facts["worker"], facts["records"]) == (lost["worker"], lost["records"])
    assert any(f"worker {lost['worker']} on" in n and "was lost" in n for n in run.manifest["notes"])
    assert run.count("worker")[lost["worker"]] == lost["records"]
    assert in_order(run.measured())
    # The one that is left has all users from the next turn on.
    later = Counter((r["turn"], r["worker"]) for r in run.records if r["turn"])
    left = "w1" if lost["worker"] == "w0" else "w0"
    assert later == {(turn, left): 48 for turn in (1, 2, 3)}
    assert {e["users"] for e in run.events if e["kind"] == "turn_start"} == {4}
    assert "validity: suspect" in run.out
    assert "Traceback" not in run.err


def test_a_worker_that_was_held_up_does_not_disturb_later_turns(runs, sim):
    a = sim("vllm", speed=2)
    run = start_locust(
        runs,
        "--headless",
        *engine_flags(a=a),
        *STEADY,
        *("--turn-requests", "48", "--blocks", "2", "--processes", "2"),
    )
    run.wait_for(busy_in_turn(0))
    held = children(run)[0]
    os.kill(held, signal.SIGSTOP)
    try:
        run.wait_for(lambda r: any(e["kind"] == "worker_lost" for e in r.events))
        run.wait_for(busy_in_turn(1, 4))
    finally:
        os.kill(held, signal.SIGCONT)
    run.wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", False), ("a", True)]
    assert in_order(run.measured())
    (lost,) = (e["worker"] for e in run.events if e["kind"] == "worker_lost")
    assert run.count("turn", "worker")[1, lost] == 0
    own = [r for r in run._lines(f"requests-{lost}.jsonl") if r["turn"] == 1]
    assert own == []


def test_without_any_worker_the_run_ends(runs, sim):
    run = start_locust(
        runs,
        "--headless",
        *engine_flags(a=sim("vllm", speed=2)),
        *STEADY,
        *("--turn-requests", "400", "--blocks", "2", "--processes", "2"),
    )
    run.wait_for(busy_in_turn(0))
    for pid in children(run):
        os.kill(pid, signal.SIGKILL)
    run.wait()
    assert run.code == 1
    assert "no worker is left" in run.err
    assert run.manifest["state"] == "failed"
    assert "Traceback" not in run.err


def test_a_late_worker_joins_at_the_next_turn(runs, sim):
    flags = (*engine_flags(a=sim("vllm", speed=2)), *STEADY, "--turn-requests", "24", "--blocks", "3")
    with Cluster(runs, *flags, workers=1) as cluster:
        cluster.master.wait_for(busy_in_turn(0, 4))
        cluster.worker()
        run = cluster.wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", True)] * 3
    assert run.count("outcome") == {"ok": 72}
    turns = {t: Counter(r["worker"] for r in run.records if r["turn"] == t).most_common() for t in range(3)}
    assert turns[0] == [("w0", 24)]
    assert sorted(turns[2]) == [("w0", 12), ("w1", 12)]
    assert {e["users"] for e in run.events if e["kind"] == "turn_start"} == {4}
    assert in_order(run.measured())


KEY = {"GPU_KEY": "sk-of-the-engine"}


def with_a_key(folder: Path, one) -> tuple[str, ...]:
    file = folder / "key.toml"
    file.write_text(f'[engines.a]\nkind = "vllm"\nurl = "{one.url}"\napi_key_env = "GPU_KEY"\n')
    return ("--loadgen-config", str(file))


def test_a_worker_without_the_key_of_an_engine(runs, sim, tmp_path):
    flags = with_a_key(tmp_path, sim("vllm", speed=4))
    with Cluster(runs, *flags, *SHORT, "-u", "4", env=KEY, expect=2) as cluster:
        cluster.worker(*flags, env=KEY)
        cluster.worker(*flags)
        run = cluster.wait()
    assert run.code == 1
    assert "engine a: the environment variable GPU_KEY is not set" in run.err
    assert "worker w" in run.err
    assert run.manifest["state"] == "failed"
    assert run.records == []
    assert "Traceback" not in run.err


def test_a_late_worker_that_cannot_take_part_is_left_out(runs, sim, tmp_path):
    flags = with_a_key(tmp_path, sim("vllm", speed=2))
    with Cluster(
        runs, *flags, *STEADY, "--turn-requests", "24", "--blocks", "2", env=KEY, expect=1
    ) as cluster:
        cluster.worker(*flags, env=KEY)
        cluster.master.wait_for(busy_in_turn(0, 4))
        cluster.worker(*flags)
        run = cluster.wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", True)] * 2
    assert run.count("worker") == {"w0": 48}
    assert any("takes no part: engine a: the environment variable" in n for n in run.manifest["notes"])
    assert {e["users"] for e in run.events if e["kind"] == "turn_start"} == {4}


@pytest.fixture
def other_version(tmp_path):
    """A place on the module path that makes this worker's loadgen one of another version."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import loadgen\nloadgen.__version__ = '0.0.1'\n")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).resolve().parents[2]}"}


def test_a_worker_of_another_version(runs, sims, other_version):
    with Cluster(runs, *engine_flags(a=sims[0]), *SHORT, "-u", "2", expect=1) as cluster:
        cluster.worker(env=other_version)
        run = cluster.wait()
    assert run.code == 1
    assert "it has loadgen 0.0.1, the master has" in run.err
    assert run.manifest["state"] == "failed"
    assert "Traceback" not in run.err


def test_ctrl_c_while_no_worker_has_come(runs, sims):
    with Cluster(runs, *engine_flags(a=sims[0]), *SHORT, expect=1) as cluster:
        cluster.master.wait_for(lambda r: "Waiting for workers" in r._logs[1].read_text())
        cluster.master.send(signal.SIGINT)
        run = cluster.wait(30)
    assert run.code != 0
    assert run.manifest["state"] in ("interrupted", "failed")
    assert "Traceback" not in run.err
