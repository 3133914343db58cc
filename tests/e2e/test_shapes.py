"""Users that vary: shapes, by hand in the web page, with workers."""

from __future__ import annotations

import json
import signal
import sys

from tests.e2e.conftest import engine_flags
from tests.e2e.test_locust_web import Web
from tests.support.locust_run import LocustRun, run_loadgen, run_locust, start_locust

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


def test_with_workers_users_come_and_go_on_all_of_them_and_nothing_is_lost(runs, sim):
    one = sim("vllm", speed=20)
    flags = (*engine_flags(a=one), *FEW, "--shape", "steps:2,6,2@3s", "--processes", "2")
    run = run_locust(runs, *flags, scenario="ramp")
    assert run.code == 0, run.err
    assert run.turns() == [("a", True)]
    settled = [e["users"] for e in run.events if e["kind"] == "users" and e["settled"]]
    assert settled == [2, 6, 2]
    assert run.count("outcome").keys() == {"ok"}
    assert {r["worker"] for r in run.measured()} == {"w0", "w1"}
    texts = [r["pair"] for r in run.measured()]
    assert len(set(texts)) == len(texts)
    one.stop()
    assert sorted(r["response_id"] for r in run.records) == sorted(r["id"] for r in one.log_records())


OWN = """
from locust import LoadTestShape
from loadgen.users import RAMP, LlmUser

class Load(LlmUser):
    scenario = RAMP

class TwoThenThree(LoadTestShape):
    def tick(self):
        t = self.get_run_time()
        return None if t > 4 else (2 if t < 2 else 3, 50)
"""


def test_a_shape_of_ones_own_runs_whole_on_each_engine(runs, both, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    command = [sys.executable, "-m", "locust", "-f", str(file), "--headless", "--runs-dir", str(runs)]
    run = LocustRun([*command, *both, *FEW], runs).wait()
    assert run.code == 0, run.err
    assert run.turns() == [("a", True), ("b", True)]
    assert levels(run, "a") == levels(run, "b") == [2, 3]


def test_the_class_picker_offers_shapes_and_by_hand_engines_go_on_in_parallel(runs, both):
    web = Web(runs, *both, *FEW, "--class-picker", "--level", "1", scenario="ramp")
    try:
        assert '"available_shape_classes": ["Default", "FindKnee", "Ramp", "Spike", "Steps"]' in web.get("/")
        web.swarm(user_count=2, user_classes="Load", shape_class="Steps")
        web.run.wait_for(lambda r: r.manifest.get("state") == "complete")
        assert levels(web.run, "a") == levels(web.run, "b") == [1, 2]
        assert web.run.manifest["settings"]["shape"] == "steps"

        web.run.wait_for(lambda _: web.state() == "stopped")
        web.swarm(user_count=3, user_classes="Load", shape_class="Default")
        web.run.wait_for(lambda _: web.problems())
        assert "by hand one engine is loaded, and here are 2" in web.problems()[-1]

        web.swarm(user_count=4, user_classes="Load", shape_class="Default", residency="parallel")
        web.run.wait_for(lambda r: len(web.runs()) == 2 and {x["engine"] for x in r.measured()} == {"a", "b"})
        web.run.wait_for(lambda r: "users" in {e["kind"] for e in r.events})
        web.stop()
        web.run.wait_for(lambda r: r.manifest.get("state") == "complete")
        settled = [(e["engine"], e["users"]) for e in web.run.events if e["kind"] == "users" and e["settled"]]
        assert settled == [("a", 2), ("b", 2)]
        web.run.send(signal.SIGINT)
        web.run.wait()
        assert web.run.code == 0, web.run.err
        assert "Traceback" not in web.run.err
    finally:
        web.run.stop()


def test_mistakes_are_told_before_anything_is_sent(runs, both):
    for flags, words in (
        ((), "by hand (--shape hand) the users come from the web page"),
        (("--shape", "waves"), "--shape: 'waves' is no shape"),
        (("--shape", "knee", "--residency", "parallel"), "the knee is searched on one engine at a time"),
    ):
        run = run_locust(runs, *both, *FEW, *flags, scenario="ramp")
        assert run.code == 2
        assert words in run.err
        assert "Traceback" not in run.err
    assert not runs.exists()


def test_a_shape_that_is_stopped_leaves_figures_of_what_there_is(runs, sim):
    one = sim("vllm", speed=20)
    run = start_locust(
        runs, "--headless", *engine_flags(a=one), *FEW, "--shape", "steps:1,3@3s,", scenario="ramp"
    )
    assert run.wait().code == 2
    flags = (*engine_flags(a=one), *FEW, "--shape", "2@2s,3@1h", "--slo", "ttft_p95<10s")
    run = start_locust(runs, "--headless", *flags, scenario="ramp")
    run.wait_for(lambda r: any(e["kind"] == "users" and e["users"] == 3 and e["settled"] for e in r.events))
    run.wait_for(lambda r: len(r.measured()) > 60)
    run.send(signal.SIGINT)
    run.wait()
    assert run.manifest["state"] == "interrupted"
    assert run.turns() == [("a", False)]
    figures = json.loads(run_loadgen(runs, "summary", "--json", "--runs-dir", str(runs)).out)["ramp"]["a"]
    assert figures["incomplete"]
    assert [level["users"] for level in figures["levels"]] == [2, 3]
    assert figures["within_slo"]["broken"] is None
