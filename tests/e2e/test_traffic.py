"""Mixes, several prompt lengths and conversations, through Locust's own command."""

from __future__ import annotations

import json
import signal
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from tests.e2e.conftest import SHORT
from tests.e2e.test_locust_web import Web
from tests.support.locust_run import run_loadgen, run_locust, start_locust

QUICK = ("--cooldown", "0", "--blocks", "2")


def test_a_mix_has_figures_for_each_class(runs, both):
    mix = "interactive=3:60/8,long=1:400/12"
    run = run_locust(runs, *both, *QUICK, "-u", "3", "--turn-requests", "8", "--mix", mix, scenario="mixed")
    assert run.code == 0, run.err
    counted = Counter(
        (r["engine"], r["block"], r["traffic_class"], r["prompt_tokens"], r["output_tokens"])
        for r in run.measured()
    )
    assert counted == {
        (engine, block, *kind): n
        for engine in "ab"
        for block in (0, 1)
        for kind, n in {("interactive", 60, 8): 6, ("long", 400, 12): 2}.items()
    }
    engines = json.loads((run.dir / "summary.json").read_text())["mixed"]
    for figures in engines.values():
        classes = figures["classes"]
        assert {name: c["counts"]["ok"] for name, c in classes.items()} == {"interactive": 12, "long": 4}
        assert sum(c["window"]["tokens"] for c in classes.values()) == figures["window"]["tokens"]
    assert "class interactive" in run.out
    assert "class long" in run.out


def test_prompt_lengths_as_a_sweep(runs, both):
    flags = ("--prompt-tokens", "300,100", "--output-tokens", "4", "--turn-requests", "2")
    run = run_locust(runs, *both, *QUICK, *flags, scenario="long_prompt")
    assert run.code == 0, run.err
    by_turn = defaultdict(list)
    for r in sorted(run.measured(), key=lambda r: r["sent_ns"]):
        by_turn[r["turn"]].append(r["prompt_tokens"])
    assert set(map(tuple, by_turn.values())) == {(100, 100, 300, 300)}
    engines = json.loads((run.dir / "summary.json").read_text())["long_prompt"]
    assert list(engines["a"]["classes"]) == ["prompt-100", "prompt-300"]

    flags = ("--prompt-tokens", "300,9000000", "--turn-requests", "1")
    refused = run_loadgen(runs, "run", "long_prompt", *both, *flags)
    assert refused.code == 1
    assert "too few for 9000000 prompt and 256 output tokens" in refused.err


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_conversations_grow_and_find_their_beginning_in_the_cache(runs, both, processes):
    flags = ("--exchanges", "3", "--system-tokens", "100", "--prompt-tokens", "40", "--output-tokens", "8")
    flags += ("-u", "2", "--turn-requests", "12", "--think-time", "0.02", *processes)
    run = run_locust(runs, *both, *QUICK, *flags, scenario="chat")
    assert run.code == 0, run.err
    assert all(complete for _, complete in run.turns())
    measured = run.measured()
    classes = Counter((r["engine"], r["traffic_class"]) for r in measured)
    assert classes == {(e, c): n for e in "ab" for c, n in (("first-turn", 8), ("warm-turns", 16))}
    for engine in "ab":
        mine = {r["pair"]: r for r in measured if r["engine"] == engine}
        assert sorted(mine) == list(range(24))
        for start in range(0, 24, 3):
            talk = [mine[start + n] for n in range(3)]
            assert len({(r["user"], r["worker"]) for r in talk}) == 1
            lengths = [r["prompt_tokens"] for r in talk]
            assert all(late - early > 40 for early, late in pairwise(lengths))
            for before, after in pairwise(talk):
                gap_ms = (after["sent_ns"] - before["sent_ns"]) / 1e6 - before["complete_ms"]
                assert gap_ms > 9.9
    # llama.cpp reports what it found: later turns find all that was said before.
    warm = [r for r in measured if r["engine"] == "b" and r["traffic_class"] == "warm-turns"]
    assert min(r["cached_tokens"] for r in warm) > 100
    notes = " ".join(run.manifest["notes"])
    assert "came from the prefix cache, as is wanted here" in notes
    assert "too good" not in notes


def test_a_conversation_whose_answer_fails_ends(runs, sim):
    server = sim("vllm", speed=20, fault=["500@0.3"])
    flags = ("--engine", f"a=vllm:{server.url}", "--exchanges", "4", "-u", "2", "--turn-requests", "24")
    run = run_locust(runs, *flags, "--output-tokens", "4", *QUICK, scenario="chat")
    assert run.code == 1
    failed = [r for r in run.measured() if r["outcome"] == "failed"]
    assert failed
    assert any("further questions of conversations were not asked" in n for n in run.manifest["notes"])
    assert all(complete for _, complete in run.turns())


def test_replicas_get_requests_in_turn(runs, sim):
    servers = [sim("llamacpp", speed=20) for _ in range(2)]
    flags = ("--engine", f"a=llamacpp:{servers[0].url},{servers[1].url}", "-u", "4", "--turn-requests", "8")
    run = run_locust(runs, *flags, "--output-tokens", "4", *QUICK)
    assert run.code == 0, run.err
    measured = run.measured()
    assert Counter((r["block"], r["replica"]) for r in measured) == {
        (b, k): 4 for b in (0, 1) for k in (0, 1)
    }
    assert all(r["outcome"] == "ok" for r in measured)
    for k, server in enumerate(servers):
        mine = {r["response_id"] for r in measured if r["replica"] == k}
        assert len(mine) == 8
        server.stop()
        assert mine <= {request["id"] for request in server.log_records()}
    assert "by replica" in run.out
    (engine,) = run.manifest["engines"]
    assert engine["facts"]["urls"] == [s.url for s in servers]


def test_replicas_serve_the_same_model(runs, sim):
    one, other = sim("vllm", speed=20, model="m-8b"), sim("vllm", speed=20, model="n-70b")
    run = run_locust(runs, "--engine", f"a=vllm:{one.url},{other.url}", *QUICK)
    assert run.code == 1
    assert "its addresses serve different things" in run.err
    assert "Traceback" not in run.err


def test_a_run_that_is_cut_while_its_users_think(runs, sim):
    server = sim("vllm", speed=20)
    flags = ("--engine", f"a=vllm:{server.url}", "--exchanges", "2", "-u", "2", "--turn-requests", "8")
    run = run_locust(runs, *flags, "--output-tokens", "4", "--think-time", "60", "-t", "4s", scenario="chat")
    assert run.code == 0, run.err
    assert run.manifest["state"] == "interrupted"
    assert Counter(r["traffic_class"] for r in run.measured()) == {"first-turn": 2}
    assert run.turns() == [("a", False)]
    assert not any("were not asked" in note for note in run.manifest["notes"])
    assert "Traceback" not in run.err


def test_ctrl_c_ends_conversations_after_the_answer_that_is_under_way(runs, sim):
    server = sim("vllm", speed=1)
    flags = ("--engine", f"a=vllm:{server.url}", "--exchanges", "3", "-u", "2", "--turn-requests", "600")
    more = ("--output-tokens", "40", "--warmup-requests", "0", *QUICK)
    run = start_locust(runs, "--headless", *flags, *more, scenario="chat")
    run.wait_for(lambda r: any(m["traffic_class"] == "warm-turns" for m in r.measured()))
    run.send(signal.SIGINT)
    run.wait()
    assert run.code in (0, 130), run.err
    assert {r["outcome"] for r in run.measured()} == {"ok"}
    assert run.manifest["state"] == "interrupted"
    assert [complete for _, complete in run.turns()] == [False]
    assert "Traceback" not in run.err


def test_a_mix_of_the_web_form(runs, both):
    web = Web(runs, *both, *SHORT)
    try:
        web.swarm(mix="nonsense")
        assert any("--mix: 'nonsense' is not NAME=SHARE" in text for text in web.problems())
        web.swarm(mix="interactive=3:50/8,batch=1:60/8")
        web.shows(
            {
                f"{engine} concurrency {kind} (simulated)": n
                for engine in "ab"
                for kind, n in (("interactive", 6), ("batch", 2))
            }
            | {"Aggregated": 16}
        )
    finally:
        web.run.stop()
