"""Runs that end before their time: by -t, Ctrl-C, SIGTERM, SIGKILL, a full disk."""

from __future__ import annotations

import signal
import sys

import pytest

from loadgen.store import RunDir
from tests.e2e.conftest import SHORT, engine_flags
from tests.support.locust_run import ROOT, LocustRun, run_loadgen, run_locust, start_locust
from tests.support.telemetry_child import environment

# At the reference speed 64 tokens take about 1.5 s: long enough to be in the middle of it.
LONG = (
    "--turn-requests",
    "64",
    "--blocks",
    "2",
    "--output-tokens",
    "64",
    "--warmup-requests",
    "0",
    "-u",
    "4",
)


def in_flight(run):
    return len(run.records) >= 8


def test_the_time_limit_lets_requests_in_flight_finish(runs, sim):
    run = run_locust(runs, *engine_flags(a=sim("vllm")), *LONG, "-t", "4")
    assert run.code == 0, run.err
    assert run.count("outcome").keys() == {"ok"}
    phases = run.count("phase")
    assert phases["drain"] == 4
    assert 4 <= phases["measure"] < 64
    assert run.turns() == [("a", False)]
    assert run.manifest["state"] == "interrupted"
    assert "after 0 of 2 complete blocks" in run.manifest["notes"][0]


def test_a_short_stop_timeout_cuts_what_is_left_as_cancelled(runs, sim):
    one = sim("vllm", fault=["stall:10"])
    csv = runs.parent / "s"
    run = run_locust(runs, *engine_flags(a=one), *LONG, "-t", "2", "-s", "1", "--csv", str(csv))
    assert run.count("outcome", "error") == {("cancelled", None): 4}
    assert run.code == 1  # nothing was measured
    assert "nothing was measured" in run.err
    # Neither a success nor a failure: Locust's statistics know nothing of them.
    assert "a concurrency (simulated)" not in (runs.parent / "s_stats.csv").read_text()


def test_ctrl_c_once_finishes_what_is_in_flight(runs, sim):
    run = start_locust(runs, "--headless", *engine_flags(a=sim("vllm")), *LONG)
    run.wait_for(in_flight)
    run.send(signal.SIGINT)
    run.wait()
    assert run.count("outcome").keys() == {"ok"}
    assert run.count("phase")["drain"] == 4
    assert "4 requests in flight may finish (Ctrl-C again cuts them)" in run.err
    assert "Traceback" not in run.err
    assert run.manifest["state"] == "interrupted"
    assert "tok/s" in run.out  # the summary is printed all the same


def test_ctrl_c_while_a_driver_is_waited_for_ends_the_run_as_interrupted(runs, sim):
    env = environment(hang="nvmlInit")
    run = start_locust(runs, "--headless", *engine_flags(a=sim("vllm", speed=20)), *SHORT, env=env)
    run.wait_for(lambda r: (r.dir / "telemetry.log").exists())
    run.send(signal.SIGINT)
    run.wait()
    assert run.code == 130
    assert "KeyboardInterrupt" not in run.err
    assert run.manifest["state"] == "interrupted"


def test_ctrl_c_twice_cuts(runs, sim):
    one = sim("vllm", fault=["stall:10"])
    run = start_locust(runs, "--headless", *engine_flags(a=one), *LONG)
    run.wait_for(lambda r: any(e["kind"] == "turn_start" for e in r.events))
    run.send(signal.SIGINT)
    run.wait_for(lambda r: "Ctrl-C again" in r._logs[1].read_text())
    # Two that come at once are one keystroke, so keep pressing until it is taken for a second one.
    run.wait_for(lambda r: r.send(signal.SIGINT) or "cutting" in r._logs[1].read_text())
    run.wait()
    assert run.count("outcome") == {"cancelled": 4}
    assert run.manifest["state"] == "interrupted"
    assert "Traceback" not in run.err


def test_sigterm_ends_the_run_in_order(runs, sim):
    run = start_locust(runs, "--headless", *engine_flags(a=sim("vllm")), *LONG)
    run.wait_for(in_flight)
    run.send(signal.SIGTERM)
    run.wait()
    assert run.count("outcome").keys() == {"ok"}
    assert run.events[-1]["kind"] == "run_end"
    assert "Traceback" not in run.err


def test_sigkill_loses_at_most_one_line(runs, sim):
    one = sim("vllm", speed=4)
    run = start_locust(runs, "--headless", *engine_flags(a=one), *LONG)
    run.wait_for(in_flight)
    run.send(signal.SIGKILL)
    run.wait()
    records = run.records
    assert len(records) >= 8
    assert RunDir.open(run.dir).manifest().state == "running"
    summary = run_loadgen(runs.parent / "other", "summary", str(run.dir.resolve()))
    assert summary.code == 0, summary.err
    assert f"{len([r for r in records if r['outcome'] == 'ok'])} of" in summary.out


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="needs file size limits")
def test_a_disk_that_is_full_stops_the_run_with_a_clear_sentence(runs, sims):
    limited = (
        "import resource, runpy, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); "
        "runpy.run_module('locust', run_name='__main__')"
    )
    flags = ["-f", str(ROOT / "locustfiles/concurrency.py"), "--headless", "--runs-dir", str(runs)]
    command = [sys.executable, "-c", limited, *flags, *engine_flags(a=sims[0]), *SHORT]
    run = LocustRun([*command, "--turn-requests", "64", "--blocks", "4"], runs).wait()
    assert run.code == 1
    assert "the run is stopped: " in run.err
    assert "could not be written (File too large)" in run.err
    assert len(run.measured()) < 256
