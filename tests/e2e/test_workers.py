"""Several processes send one run: with --processes, and as master and workers."""

from __future__ import annotations

import itertools
import os
import signal
import socket
from collections import Counter

import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.cluster import Cluster, alive, children
from tests.support.locust_run import run_locust, start_locust

# At the reference speed 64 tokens take about 1.5 s: long enough to be in the middle of it.
LONG = (
    "--turn-requests",
    "64",
    "--output-tokens",
    "64",
    "--warmup-requests",
    "0",
    "-u",
    "4",
    "--cooldown",
    "0",
)


def in_order(records):
    """Turns as they were sent, each after all requests of the one before have ended."""
    turns = sorted({r["turn"] for r in records})
    sent = {t: min(r["sent_ns"] for r in records if r["turn"] == t) for t in turns}
    ended = {t: max(r["sent_ns"] + r["complete_ms"] * 1e6 for r in records if r["turn"] == t) for t in turns}
    return all(sent[b] > ended[a] for a, b in itertools.pairwise(turns))


def answered(*sims):
    """The ids of all streams in the servers' own logs."""
    return Counter(row["id"] for one in sims for row in one.log_records() if row["stream"])


def test_processes_send_each_request_once_and_turns_in_order(runs, sim):
    a, b = sim("vllm", speed=20), sim("llamacpp", speed=20)
    run = run_locust(runs, *engine_flags(a=a, b=b), *SHORT, *("-u", "4", "--blocks", "4", "--processes", "2"))
    assert run.code == 0, run.err
    assert run.manifest["state"] == "complete"
    assert run.manifest["notes"] == []
    assert run.turns() == [(engine, True) for engine in "abbabaab"]
    measured = run.measured()
    assert in_order(measured)
    assert Counter((r["engine"], r["block"]) for r in measured) == {(e, k): 8 for e in "ab" for k in range(4)}
    assert run.count("phase", "engine", "worker") == {
        (phase, e, w): n for phase, n in (("measure", 16), ("warmup", 4)) for e in "ab" for w in ("w0", "w1")
    }
    assert Counter(r["response_id"] for r in run.records) == answered(a, b)
    assert Counter((r["engine"], r["pair"]) for r in measured) == {(e, p): 1 for e in "ab" for p in range(32)}
    for worker in ("w0", "w1"):  # a safety copy, to the byte
        own = (run.dir / f"requests-{worker}.jsonl").read_bytes().splitlines()
        assert own == [x for x in (run.dir / "requests.jsonl").read_bytes().splitlines() if x in set(own)]
        assert len(own) == 40
    assert [w["records"] for w in run.manifest["workers"]] == [40, 40]
    assert "Traceback" not in run.err


def test_a_master_and_workers_on_other_machines(runs, sims):
    with Cluster(runs, *engine_flags(a=sims[0], b=sims[1]), *SHORT, "-u", "16", workers=3) as cluster:
        run = cluster.wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", True), ("b", True)]
    # Sixteen users on three: 6, 5 and 5; eight requests for the first eight of them.
    users = {(r["worker"], r["user"]) for r in run.records if r["phase"] == "warmup"}
    assert sorted(Counter(w for w, _ in users).values()) == [5, 5, 6]
    assert run.count("phase", "engine") == {
        ("warmup", "a"): 32,
        ("warmup", "b"): 32,
        ("measure", "a"): 8,
        ("measure", "b"): 8,
    }
    for worker in cluster.workers:
        assert worker.code == 0, worker.err
        assert "Traceback" not in worker.err


def test_more_workers_than_users(runs, sims):
    run = run_locust(runs, *engine_flags(a=sims[0]), *SHORT, "-u", "1", "--processes", "2")
    assert run.code == 0, run.err
    assert run.turns() == [("a", True)]
    assert len({r["worker"] for r in run.records}) == 1
    assert run.manifest["notes"] == []


def test_parallel_engines_share_the_users_of_all_workers(runs, sim):
    a, b = sim("vllm", speed=4), sim("llamacpp", speed=4)
    run = run_locust(
        runs,
        *engine_flags(a=a, b=b),
        *SHORT,
        *("-u", "3", "--residency", "parallel", "--output-tokens", "32", "--blocks", "2", "--processes", "2"),
    )
    assert run.code == 0, run.err
    measured = run.measured()
    assert Counter(r["engine"] for r in measured) == {"a": 16, "b": 16}
    users = {e: {(r["worker"], r["user"]) for r in measured if r["engine"] == e} for e in "ab"}
    assert len(users["a"]) == len(users["b"]) == 3
    assert not users["a"] & users["b"]
    assert Counter(r["response_id"] for r in run.records) == answered(a, b)


def test_a_steady_warm_up_is_one_of_all_workers(runs, sims):
    run = run_locust(
        runs, *engine_flags(a=sims[0]), *SHORT, "-u", "2", "--warmup", "steady", "--processes", "2"
    )
    assert run.code == 0, run.err
    by_worker = run.count("phase", "worker")
    assert by_worker["warmup", "w0"] == by_worker["warmup", "w1"] >= 2
    assert run.turns() == [("a", True)]


def test_the_time_limit_lets_requests_in_flight_finish(runs, sim):
    flags = ("--blocks", "1", "-t", "8", "--processes", "2")
    run = run_locust(runs, *engine_flags(a=sim("vllm")), *LONG, *flags)
    assert run.code == 0, run.err
    assert run.count("outcome").keys() == {"ok"}
    assert run.count("phase")["drain"] == 4
    assert run.turns() == [("a", False)]
    assert run.manifest["state"] == "interrupted"
    assert "Traceback" not in run.err


def press(run):
    """Ctrl-C in a terminal: every process of the group gets it."""
    for pid in children(run):
        os.kill(pid, signal.SIGINT)
    run.send(signal.SIGINT)


def test_ctrl_c_once_finishes_what_is_in_flight(runs, sim):
    one = sim("vllm")
    run = start_locust(runs, "--headless", *engine_flags(a=one), *LONG, "--processes", "2")
    run.wait_for(lambda r: len(r.records) >= 8)
    workers = children(run)
    press(run)
    run.wait()
    assert run.count("outcome").keys() == {"ok"}
    assert run.count("phase")["drain"] == 4
    assert "4 requests in flight may finish (Ctrl-C again cuts them)" in run.err
    assert Counter(r["response_id"] for r in run.records) == answered(one)
    assert run.manifest["state"] == "interrupted"
    assert "Traceback" not in run.err
    assert not any(map(alive, workers))


def test_ctrl_c_twice_cuts_and_what_was_cut_arrives(runs, sim):
    one = sim("vllm", fault=["stall:10"])
    run = start_locust(runs, "--headless", *engine_flags(a=one), *LONG, "--processes", "2")
    run.wait_for(lambda r: any(e["kind"] == "turn_start" for e in r.events))
    run.wait_for(lambda r: sum(row["in_flight"] for row in r._lines("windows.jsonl")[-2:]) == 4)
    press(run)
    run.wait_for(lambda r: "Ctrl-C again" in r._logs[1].read_text())
    run.wait_for(lambda r: press(r) or "cutting" in r._logs[1].read_text())
    run.wait()
    assert run.count("outcome") == {"cancelled": 4}
    assert run.manifest["state"] == "interrupted"
    assert "Traceback" not in run.err


def test_a_port_that_is_taken_is_one_sentence(runs, sims):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = str(s.getsockname()[1])
        where = ("--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
        run = run_locust(runs, *engine_flags(a=sims[0]), *SHORT, *where)
    assert run.code == 1
    assert f"loadgen: no worker could reach port {port}" in run.err
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    "flags", [("--processes", "2"), ("--master", "--master-bind-port", "0")], ids=["processes", "master"]
)
def test_a_mistake_is_one_sentence(runs, flags):
    run = run_locust(runs, "--engine", "dead=vllm:http://127.0.0.1:9", *flags)
    assert run.code == 1
    assert "nothing listens at http://127.0.0.1:9" in run.err
    assert "Traceback" not in run.err
