"""The run directory of a distributed run: two workers' journals, in the database once.

Records reach the master's journal, but not all of them: a worker that died left some in its own alone. The
two workers' clocks give the same `point_ns` again and again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.store import EventsWriter, Manifest, RunDir
from tests.support.influxdb import Bucket
from tests.support.locust_run import LocustRun, run_loadgen
from tests.unit.metrics.rows import T0, row

S = 10**9
ENGINES, WORKERS = ("a", "b"), ("w1", "w2")
TURN_S, REQUESTS, TOKENS = 10, 20, 8  # of each worker in each turn
LOST = 5  # of them, of w2, never reached the master


def request(engine: str, turn: int, worker: str, k: int) -> dict[str, Any]:
    """One of twenty requests of 400 ms, one after the other, eight tokens 50 ms apart."""
    sent_s = turn * TURN_S + k * 0.5
    failed = {"outcome": "failed", "error": "truncated"} if (worker, k) == ("w1", 0) else {}
    made = row(
        sent_s,
        0.4,
        run="two",
        scenario="concurrency",
        engine=engine,
        worker=worker,
        turn=turn,
        block=0,
        output_tokens=TOKENS,
        event_us=[50_000 * (i + 1) for i in range(TOKENS)],
        point_ns=T0 + int((sent_s + 0.45) * S),
        **failed,
    )
    return made


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in rows))


@pytest.fixture
def made(runs: Path) -> RunDir:
    run = RunDir.create(runs, "concurrency")
    events = EventsWriter(run.events_path)
    events.append("run_start", t_ns=T0, mono_ns=0, scenario="concurrency")
    mine: dict[str, list[dict[str, Any]]] = {w: [] for w in WORKERS}
    reached: list[dict[str, Any]] = []
    windows: dict[str, list[dict[str, Any]]] = {w: [] for w in WORKERS}
    for turn, engine in enumerate(ENGINES):
        at = {"engine": engine, "turn": turn, "block": 0}
        for edge, kind in ((turn, "turn_start"), (turn + 1, "turn_end")):
            t = edge * TURN_S * S
            more = {"complete": True} if kind == "turn_end" else {"users": 2}
            events.append(kind, t_ns=T0 + t, mono_ns=t, **at, **more)
        for k in range(REQUESTS):
            for worker in WORKERS:
                one = request(engine, turn, worker, k)
                mine[worker].append(one)
                if worker == "w1" or k < REQUESTS - LOST:
                    reached.append(one)
    length = len(ENGINES) * TURN_S
    for second in range(length):
        for worker in WORKERS:
            for turn, engine in enumerate(ENGINES):
                on = second // TURN_S == turn
                windows[worker].append(
                    {
                        "t_ns": T0 + second * S,
                        "engine": engine,
                        "worker": worker,
                        "phase": "measure" if on else "idle",
                        "measured_s": 1.0 * on,
                        "tokens": 99 * on,
                        "in_flight": 1 * on,
                        "users": 1 * on,
                        "completions": 0,
                        "failures": 0,
                        "loop_lag_ms": 0.5,
                        "cpu_percent": 3.0,
                    }
                )
    events.append("run_end", t_ns=T0 + length * S, mono_ns=length * S, state="complete")
    events.close()
    write(run.journal_path, reached)
    for worker in WORKERS:
        write(run.worker_journal_path(worker), mine[worker])
        write(run.path / f"windows-{worker}.jsonl", windows[worker])
    Manifest(
        run="two",
        scenario="concurrency",
        state="complete",
        start_ns=T0,
        engines=[{"name": e, "model": "m"} for e in ENGINES],
        host={"name": "generator"},
        settings={"turn_requests": 2 * REQUESTS},
    ).write(run.manifest_path)
    return run


@dataclass(frozen=True)
class Stored:
    bucket: Bucket

    def by(self, tags: str, what: str, measurement: str, where: str = "") -> dict[Any, float]:
        found = self.bucket.rows(f"SELECT {what} AS v FROM {measurement} {where} GROUP BY {tags}")
        names = [t.strip() for t in tags.split(",")]
        return {(r[names[0]] if len(names) == 1 else tuple(r[n] for n in names)): r["v"] for r in found}


def ship(run: RunDir, bucket: Bucket) -> LocustRun:
    sent = run_loadgen(run.path.parent, "ship", str(run.path), env=bucket.env)
    assert sent.code == 0, sent.err
    return sent


def check(bucket: Bucket, throughput: dict[str, float]) -> None:
    stored = Stored(bucket)
    each = {(e, w): REQUESTS for e in ENGINES for w in WORKERS}
    assert stored.by("engine, worker", 'count("failed")', "llm_request") == each
    assert stored.by("engine", 'sum("failed")', "llm_request") == {"a": 1, "b": 1}
    all_tokens = dict.fromkeys(ENGINES, 2 * REQUESTS * TOKENS)
    assert stored.by("engine", 'sum("output_tokens")', "llm_request") == all_tokens
    measured = "WHERE measured_s > 0"
    tokens = stored.by("engine", 'sum("tokens")', "llm_window", measured)
    seconds = stored.by("engine", 'sum("measured_s")', "llm_window", measured)
    assert tokens == pytest.approx(all_tokens)
    assert {e: tokens[e] / seconds[e] for e in ENGINES} == pytest.approx(throughput)
    # Nothing provisional is left, and what only the generator knows is still there, of both workers.
    assert stored.by("engine", 'sum("provisional")', "llm_window") == {"a": 0, "b": 0}
    assert stored.by("engine", 'sum("users")', "llm_window") == dict.fromkeys(ENGINES, 2 * TURN_S)
    ended_well = dict.fromkeys(ENGINES, 2 * REQUESTS - 1)
    assert stored.by("engine", 'sum("completions")', "llm_window") == ended_well
    assert stored.by("engine", 'sum("failures")', "llm_window") == {"a": 1, "b": 1}


def test_every_request_and_second_counts_once(made: RunDir, bucket: Bucket) -> None:
    told = run_loadgen(made.path.parent, "summary", str(made.path), "--json")
    figures = json.loads(told.out)["concurrency"]
    throughput = {e: figures[e]["window"]["throughput_tokens_per_s"] for e in ENGINES}
    # 40 requests of 8 tokens in 10 s; the failed one's tokens arrived, too.
    assert throughput == pytest.approx(dict.fromkeys(ENGINES, 2 * REQUESTS * TOKENS / TURN_S))
    ship(made, bucket)
    check(bucket, throughput)
    # All of it again, as after the loss of the offsets: nothing is doubled.
    (made.path / "delivery.json").unlink()
    ship(made, bucket)
    check(bucket, throughput)
