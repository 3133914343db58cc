"""An open loop that is stopped, in every way there is: what was in flight finishes or is recorded as cut."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

from tests.e2e.conftest import engine_flags
from tests.e2e.test_locust_web import Web
from tests.support.cluster import children
from tests.support.locust_run import start_locust

OPEN = ("--cooldown", "0", "--gpu", "off", "--warmup-requests", "1")


def long_turn(runs, sim, *flags):
    """Some requests a second that take two seconds each, for longer than any test waits."""
    slow = sim("vllm", speed=2)
    return start_locust(
        runs, "--headless", *engine_flags(a=slow), *OPEN, "--rate", "8", "--turn-requests", "400",
        "--output-tokens", "128", "--blocks", "1", *flags, scenario="open_loop",
    )  # fmt: skip


def test_ctrl_c_lets_what_is_in_flight_finish(runs, sim):
    run = long_turn(runs, sim)
    run.wait_for(lambda r: len(r.measured()) >= 3)
    run.send(signal.SIGINT)
    run.wait()
    assert "requests in flight may finish" in run.err
    assert run.manifest["state"] == "interrupted"
    assert set(run.count("outcome")) == {"ok"}
    drained = [r for r in run.records if r["phase"] == "drain"]
    assert drained  # they ended after the signal, and were not cut
    assert run.turns() == [("a", False)]
    assert "Traceback" not in run.err


def test_twice_cuts_it_and_records_it_as_cancelled(runs, sim):
    run = long_turn(runs, sim, "--output-tokens", "2000", "--warmup-requests", "0")
    run.wait_for(lambda r: any(e["kind"] == "turn_start" for e in r.events))
    time.sleep(1)  # some are sent by now; no record tells of them before they end
    run.send(signal.SIGINT)
    run.wait_for(lambda r: "may finish" in r._logs[1].read_text())
    time.sleep(0.6)  # two at once are one keystroke
    run.send(signal.SIGINT)
    run.wait(30)
    assert "cutting" in run.err
    cut = [r for r in run.records if r["outcome"] == "cancelled"]
    assert cut
    assert all(r["scheduled_ns"] <= r["sent_ns"] for r in cut)
    assert "Traceback" not in run.err


def test_a_worker_that_is_killed_costs_its_turn_and_the_other_has_all_of_the_next(runs, sim):
    a = sim("vllm", speed=5)
    run = start_locust(
        runs, "--headless", *engine_flags(a=a), *OPEN, "--rate", "20", "--turn-requests", "60",
        "--output-tokens", "16", "--blocks", "2", "--processes", "2", scenario="open_loop",
    )  # fmt: skip
    run.wait_for(lambda r: len(r.measured()) >= 10)
    os.kill(children(run)[0], signal.SIGKILL)
    run.wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", False), ("a", True)]
    (lost,) = (e["worker"] for e in run.events if e["kind"] == "worker_lost")
    second = Counter(r["worker"] for r in run.measured() if r["turn"] == 1)
    assert second == {"w1" if lost == "w0" else "w0": 60}
    assert run.count("worker")[lost] >= 1
    assert "Traceback" not in run.err


def test_the_web_page_starts_stops_and_starts_again(runs, sim):
    web = Web(
        runs, *engine_flags(a=sim("vllm", speed=5)), *OPEN, "--output-tokens", "16", scenario="open_loop"
    )
    try:
        web.swarm()
        assert any("needs the rate" in problem for problem in web.problems())
        web.swarm(rate=10, turn_requests=500, blocks=1)
        web.run.wait_for(lambda r: len(r.measured()) >= 5)
        web.stop()
        web.run.wait_for(lambda r: r.manifest.get("state") == "interrupted")
        first = web.run.dir.resolve()
        web.swarm(rate=40, turn_requests=20, blocks=1)
        web.run.wait_for(lambda r: r.dir.resolve() != first and r.manifest.get("state") == "complete")
        assert len(web.run.measured()) == 20
        assert web.run.manifest["settings"]["open_loop"]["rate"] == 40
    finally:
        web.run.send(signal.SIGINT)
        web.run.wait(30)
    assert "Traceback" not in web.run.err
