"""Turns, prompts and Locust's own outputs, through Locust's command line."""

from __future__ import annotations

import csv
import itertools
import socket
import sys
from collections import Counter, defaultdict

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.locust_run import run_locust


def test_two_engines_take_turns_with_the_same_prompts(runs, both):
    prefix = runs.parent / "stats"
    run = run_locust(
        runs,
        *both,
        *("--turn-requests", "8", "--blocks", "4", "--output-tokens", "8", "--cooldown", "0", "-u", "4"),
        *("--csv", str(prefix)),
    )
    assert run.code == 0, run.err
    assert "".join(engine for engine, _ in run.turns()) == "abbabaab"
    assert all(complete for _, complete in run.turns())
    assert run.manifest["state"] == "complete"

    measured = run.measured()
    assert Counter((r["engine"], r["block"]) for r in measured) == {(e, b): 8 for e in "ab" for b in range(4)}
    assert {r["outcome"] for r in measured} == {"ok"}
    assert {r["prompt_tokens"] for r in measured} == {50}
    assert {r["output_tokens"] for r in measured} == {8}
    pairs = defaultdict(list)
    for r in measured:
        pairs[r["pair"]].append(r["engine"])
    assert sorted(pairs) == list(range(32))
    assert {tuple(sorted(p)) for p in pairs.values()} == {("a", "b")}

    # The end of a run writes it all: summary, and Parquet where pyarrow is.
    rows_written = pq.read_metadata(run.dir / "requests.parquet").num_rows
    assert rows_written == len(run.records)
    assert pq.read_metadata(run.dir / "chunk_events.parquet").num_rows == sum(
        len(r["event_us"]) for r in run.records
    )
    assert (run.dir / "summary.json").exists()

    # Warm-up: 2 requests a user and engine, outside the turns, none of them among Locust's statistics.
    warm = [r for r in run.records if r["phase"] == "warmup"]
    assert Counter(r["engine"] for r in warm) == {"a": 8, "b": 8}
    with open(f"{prefix}_stats.csv") as f:
        rows = {row["Name"]: row for row in csv.DictReader(f)}
    assert {n: int(r["Request Count"]) for n, r in rows.items()} == {
        "a concurrency (simulated)": 32,
        "b concurrency (simulated)": 32,
        "Aggregated": 64,
    }
    assert {r["Type"] for n, r in rows.items() if n != "Aggregated"} == {"CHAT"}
    mean = sum(r["e2e_ms"] for r in measured if r["engine"] == "a") / 32
    assert abs(float(rows["a concurrency (simulated)"]["Average Response Time"]) - mean) < 1e-6

    # No request of a turn is sent before the one before it has ended everywhere.
    turns = sorted({r["turn"] for r in measured})
    sent = {t: min(r["sent_ns"] for r in measured if r["turn"] == t) for t in turns}
    ended = {t: max(r["sent_ns"] + r["complete_ms"] * 1e6 for r in measured if r["turn"] == t) for t in turns}
    assert all(sent[t + 1] > ended[t] for t in turns[:-1])


def test_as_many_requests_are_in_flight_as_there_are_users(runs, sim):
    one = sim("vllm", speed=2)
    run = run_locust(
        runs, *engine_flags(a=one), *SHORT, "-u", "5", "--turn-requests", "20", "--output-tokens", "32"
    )
    assert run.code == 0, run.err
    measured = run.measured()
    assert {r["user"] for r in measured} == set(range(5))
    edges = [(r["sent_ns"], 1) for r in measured]
    edges += [(r["sent_ns"] + int(r["complete_ms"] * 1e6), -1) for r in measured]
    level, levels = 0, []
    for _, step in sorted(edges):
        level += step
        levels.append(level)
    assert max(levels) == 5
    first = sorted(r["sent_ns"] for r in measured)[:5]
    e2e_ms = sorted(r["e2e_ms"] for r in measured)[0]
    assert (first[-1] - first[0]) / 1e6 < e2e_ms / 4, "a burst begins together"


def test_staggered_users_begin_evenly_over_one_request(runs, sim):
    one = sim("vllm")
    run = run_locust(
        runs,
        *engine_flags(a=one),
        *SHORT,
        *("-u", "4", "--turn-requests", "4", "--output-tokens", "48", "--arrival", "staggered"),
    )
    assert run.code == 0, run.err
    sent = sorted(r["sent_ns"] for r in run.measured())
    gaps = [(b - a) / 1e6 for a, b in itertools.pairwise(sent)]
    request_ms = sum(r["e2e_ms"] for r in run.records if r["phase"] == "warmup") / 8
    assert len(gaps) == 3
    for gap in gaps:
        assert 0.7 * request_ms / 4 < gap < 1.3 * request_ms / 4


def test_parallel_engines_work_at_the_same_time_with_users_of_their_own(runs, sim):
    a, b = sim("vllm", speed=4), sim("llamacpp", speed=4)
    run = run_locust(
        runs,
        *engine_flags(a=a, b=b),
        *SHORT,
        *("-u", "2", "--residency", "parallel", "--output-tokens", "32", "--blocks", "2"),
    )
    assert run.code == 0, run.err
    measured = run.measured()
    assert Counter(r["engine"] for r in measured) == {"a": 16, "b": 16}
    users = {e: {r["user"] for r in measured if r["engine"] == e} for e in "ab"}
    assert len(users["a"]) == len(users["b"]) == 2
    assert not users["a"] & users["b"]
    first = {e: [r["sent_ns"] for r in measured if r["engine"] == e and r["block"] == 0] for e in "ab"}
    assert max(min(first["a"]), min(first["b"])) < min(max(first["a"]), max(first["b"]))


def test_completions_and_a_prompt_file(runs, both, tmp_path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"prompt": "Tell me of rivers.", "output_tokens": 5}\n{"prompt": "And of hills."}\n')
    run = run_locust(runs, *both, *SHORT, "-u", "2", "--api", "completions", "--prompt-file", str(file))
    assert run.code == 0, run.err
    assert Counter((r["engine"], r["output_tokens"]) for r in run.measured()) == {
        (e, n): 4 for e in "ab" for n in (5, 8)
    }
    assert "COMPLETION" in run.out + run.err


def test_steady_warm_up_goes_on_until_ttft_is_steady(runs, sims):
    run = run_locust(runs, *engine_flags(a=sims[0]), *SHORT, "-u", "2", "--warmup", "steady")
    assert run.code == 0, run.err
    rounds = Counter(r["phase"] for r in run.records)["warmup"] / 2
    assert rounds >= 2
    assert rounds == int(rounds)


def test_exclusive_engines_are_started_for_their_turns_and_stopped_after(runs, tmp_path):
    ports = {name: free_port() for name in ("a", "b")}
    tables = [
        f"""[engines.{name}]
kind = "{kind}"
url = "http://127.0.0.1:{ports[name]}"
start = "{sys.executable} -m loadgen.sim --kind {kind} --speed 20 --port {ports[name]}"
"""
        for name, kind in (("a", "vllm"), ("b", "llamacpp"))
    ]
    (tmp_path / "loadgen.toml").write_text('residency = "exclusive"\n' + "\n".join(tables))
    run = run_locust(runs, *SHORT, "-u", "2", "--blocks", "2")
    assert run.code == 0, run.err
    assert "".join(engine for engine, _ in run.turns()) == "abba"
    # b stays for its two turns in a row; a is started twice, and warmed up again.
    starts = [e["engine"] for e in run.events if e["kind"] == "warmup_start"]
    assert starts == ["a", "b", "a"]
    assert {r["prompt_tokens"] for r in run.measured()} == {50}
    assert [e["name"] for e in run.manifest["engines"]] == ["a", "b"]
    assert run.manifest["prompts"]["first_prompt_tokens"] == {"a": 50, "b": 50}
    for port in ports.values():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)


def test_an_exclusive_engine_that_does_not_start_is_named_with_its_last_words(runs, tmp_path):
    (tmp_path / "loadgen.toml").write_text(
        'residency = "exclusive"\n[engines.a]\nkind = "vllm"\nurl = "http://127.0.0.1:9"\n'
        'start = "echo no GPU here; exit 3"\n'
    )
    run = run_locust(runs, *SHORT)
    assert run.code == 1
    assert "engine a: its start command ended with 3 (no GPU here" in run.err
    assert run.manifest["state"] == "failed"


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def test_failures_are_results_and_end_in_the_exit_code(runs, sim):
    one = sim("vllm", fault=["error"])
    run = run_locust(runs, *engine_flags(a=one), *SHORT, "-u", "2", "--warmup-requests", "0")
    assert run.code == 1
    assert run.count("phase", "outcome") == {("measure", "failed"): 8}
    assert run.turns() == [("a", True)]
