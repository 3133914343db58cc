"""Users that vary: shapes, by hand in the web page, with workers."""

from __future__ import annotations

import signal

from tests.e2e.conftest import engine_flags
from tests.e2e.test_locust_web import Web
from tests.support.locust_run import run_locust

FEW = ("--turn-requests", "8", "--output-tokens", "8", "--cooldown", "0", "--warmup-requests", "1")


def levels(run, engine):
    return [e["users"] for e in run.events if e["kind"] == "level" and e["engine"] == engine]


def test_a_shape_runs_whole_on_each_engine_in_turn(runs, both):
    run = run_locust(runs, *both, *FEW, "--shape", "steps:1,4,2@2s", scenario="ramp")
    assert run.code == 0, run.err
    assert run.turns() == [("a", True), ("b", True)]
    for engine in ("a", "b"):
        assert levels(run, engine) == [1, 4, 2]
        settled = [
            e["users"] for e in run.events if e["kind"] == "users" and e["engine"] == engine and e["settled"]
        ]
        assert settled == [1, 4, 2]
    assert run.count("outcome").keys() == {"ok"}
    assert run.count("phase").keys() == {"warmup", "measure"}
    turn_of = {r["engine"]: r["turn"] for r in run.measured()}
    assert turn_of == {"a": 0, "b": 1}
    by_engine = {e: [r["pair"] for r in run.measured() if r["engine"] == e] for e in "ab"}
    assert all(sorted(p) == list(range(len(p))) for p in by_engine.values())
    assert run.manifest["settings"]["users"] == 4
    assert not any("prefix cache" in n for n in run.manifest["notes"]), run.manifest["notes"]


def test_by_hand_users_take_effect_at_once_and_a_stop_ends_the_run_well(runs, sim):
    web = Web(runs, *engine_flags(a=sim("vllm", speed=5)), *FEW, scenario="ramp")
    try:
        web.swarm(user_count=2)
        web.run.wait_for(lambda r: len(r.measured()) >= 4)
        web.swarm(user_count=5)  # "Edit" in the page
        web.run.wait_for(lambda r: {x["user"] for x in r.measured()} == set(range(5)))
        web.swarm(user_count=1)
        web.run.wait_for(
            lambda r: any(e.get("settled") and e["users"] == 1 for e in r.events if e["kind"] == "users")
        )
        web.stop()
        web.run.wait_for(lambda r: r.manifest.get("state") == "complete")
        assert web.run.count("outcome").keys() == {"ok"}
        assert {r["phase"] for r in web.run.records} == {"warmup", "measure"}
        assert web.run.turns() == [("a", True)]
        settled = [e["users"] for e in web.run.events if e["kind"] == "users" and e["settled"]]
        assert settled == [2, 5, 1]
        web.swarm(user_count=3, shape="steps:2,3@1s")
        web.run.wait_for(lambda r: len(web.runs()) == 2 and r.manifest.get("state") == "complete")
        assert levels(web.run, "a") == [2, 3]
        web.run.send(signal.SIGINT)
        web.run.wait()
        assert web.run.code == 0, web.run.err
        assert "Traceback" not in web.run.err
    finally:
        web.run.stop()
