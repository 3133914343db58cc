"""Open loop, through Locust's command line and `loadgen run`: requests come by a schedule."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

from tests.e2e.conftest import engine_flags
from tests.support.cluster import Cluster
from tests.support.locust_run import run_loadgen, run_locust

OPEN = ("--cooldown", "0", "--output-tokens", "8", "--gpu", "off")


def offsets_s(run):
    """Scheduled times of each turn's requests by pair, from its first."""
    turns = defaultdict(dict)
    for r in run.measured():
        turns[r["turn"], r["engine"]][r["pair"]] = r["scheduled_ns"]
    return {turn: {p: (t - min(of.values())) / 1e9 for p, t in of.items()} for turn, of in turns.items()}


def test_both_engines_get_the_same_schedule_in_abba_order(runs, both):
    run = run_loadgen(
        runs, "run", "open_loop", *both, *OPEN, "--rate", "40", "--turn-requests", "40", "--blocks", "2",
        "--runs-dir", str(runs), "-u", "7",
    )  # fmt: skip
    assert run.code == 0, run.err
    assert run.turns() == [("a", True), ("b", True), ("b", True), ("a", True)]
    assert run.count("engine", "phase", "outcome") == {
        (e, phase, "ok"): n for e in "ab" for phase, n in (("warmup", 8), ("measure", 80))
    }
    times = offsets_s(run)
    for block, turns in ((0, ((0, "a"), (1, "b"))), (1, ((3, "a"), (2, "b")))):
        a, b = (times[t] for t in turns)
        assert a.keys() == b.keys() == set(range(40 * block, 40 * block + 40))
        assert max(abs(a[p] - b[p]) for p in a) < 2e-3  # two clocks' reading apart
        assert 0.4 < max(a.values()) < 2.5
    assert times[0, "a"].values() != times[3, "a"].values()
    for r in run.measured():
        assert r["scheduled_ns"] <= r["sent_ns"]
        assert abs(r["send_lag_ms"] - (r["sent_ns"] - r["scheduled_ns"]) / 1e6) < 1e-3
    starts = [e for e in run.events if e["kind"] == "turn_start"]
    assert {e["scheduled"] for e in starts} == {40}
    ends = [e for e in run.events if e["kind"] == "turn_end"]
    assert all(e["dropped"] == 0 and e["peak_in_flight"] >= 1 for e in ends)
    assert run.manifest["settings"]["open_loop"]["rate"] == 40
    assert run.manifest["settings"]["users"] == 1
    assert "-u" in run.err  # is not used, and that is said


def test_requests_come_though_none_is_answered(runs, sim):
    # One slot and half a second an answer, twenty a second: a closed loop would wait.
    slow = sim("llamacpp", slots=1, speed=5)
    run = run_locust(
        runs, *engine_flags(a=slow), *OPEN, "--output-tokens", "64", "--rate", "20", "--turn-requests", "12",
        "--blocks", "1", "--arrival", "constant", "--warmup-requests", "0",
        scenario="open_loop",
    )  # fmt: skip
    assert run.code == 0, run.err
    measured = run.measured()
    sent = sorted(r["sent_ns"] for r in measured)
    assert (sent[-1] - sent[0]) / 1e9 < 1.0  # 0.55 s by the schedule
    ended = min(r["sent_ns"] + r["complete_ms"] * 1e6 for r in measured)
    assert sum(t < ended for t in sent) >= 3
    summary = json.loads((run.dir / "summary.json").read_text())["open_loop"]["a"]
    assert summary["scheduled_ttft_ms"]["n"] == 12


def test_what_is_due_beyond_the_limit_is_dropped_and_counted(runs, sim):
    slow = sim("llamacpp", slots=1, speed=5)
    run = run_locust(
        runs, *engine_flags(a=slow), *OPEN, "--output-tokens", "64", "--rate", "50", "--turn-requests", "20",
        "--blocks", "1", "--max-in-flight", "4", "--warmup-requests", "0", scenario="open_loop",
    )  # fmt: skip
    (end,) = [e for e in run.events if e["kind"] == "turn_end"]
    assert end["peak_in_flight"] == 4
    assert end["dropped"] == 20 - len(run.measured()) > 0
    assert end["complete"]


def test_workers_share_one_schedule_without_gaps_or_doubles(runs, sims):
    vllm, llamacpp = sims
    flags = (
        *engine_flags(a=vllm, b=llamacpp),
        *OPEN,
        "--rate",
        "40",
        "--turn-requests",
        "30",
        "--blocks",
        "1",
    )
    with Cluster(runs, *flags, workers=3, scenario="open_loop") as cluster:
        run = cluster.wait()
    assert run.code == 0, run.err
    measured = run.measured()
    assert Counter((r["engine"], r["worker"]) for r in measured) == {
        (e, f"w{k}"): 10 for e in "ab" for k in range(3)
    }
    assert sorted(r["pair"] for r in measured if r["engine"] == "a") == list(range(30))
    times = offsets_s(run)
    a, b = times[0, "a"], times[1, "b"]
    assert max(abs(a[p] - b[p]) for p in a) < 30e-3  # the workers' clocks in the master's time


def test_a_rate_is_asked_for_in_a_sentence(runs, both):
    run = run_loadgen(runs, "run", "open_loop", *both, "--runs-dir", str(runs))
    assert run.code == 2
    assert "--rate 8 for 8 a second" in run.err
    assert "Traceback" not in run.err


def test_a_sweep_of_rates_finds_what_the_server_keeps_up_with(runs, sim):
    # One slot, about 0.13 s a request: more than 8 requests a second queue up.
    slow = sim("llamacpp", slots=1, speed=5)
    run = run_loadgen(
        runs, "sweep", "--rates", "2,30", *engine_flags(a=slow), *OPEN, "--output-tokens", "16",
        "--turn-seconds", "2", "--blocks", "1", "--warmup-requests", "1", "--slo", "e2e_p50<600ms",
        "--refine", "0", "--turn-requests", "4", "--runs-dir", str(runs),
    )  # fmt: skip
    assert run.code == 0, run.err
    sweep = json.loads((run.dir / "sweep.json").read_text())
    assert sweep["variable"] == "rate"
    assert [s["load"] for s in sweep["steps"]] == [2, 30]
    low, high = (s["engines"]["a"] for s in sweep["steps"])
    assert low["requests_per_s"] < 5
    assert high["requests_per_s"] < 15
    assert high["e2e_ms"]["p50"] > 2 * low["e2e_ms"]["p50"]
    assert "requests/s" in run.err
    assert "req/s" in run.out
    assert [s["run"].partition("_")[2] for s in sweep["steps"]] == ["open_loop_2", "open_loop_30"]
    again = run_loadgen(runs, "sweep", "--rates", "1", "-u", "4", "--runs-dir", str(runs))
    assert again.code == 2
    assert "no users" in again.err
