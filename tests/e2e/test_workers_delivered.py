"""Real worker processes, and what of them is in the database: each request and second once."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.e2e.conftest import SHORT, engine_flags
from tests.support.cluster import Cluster
from tests.support.locust_run import ROOT, run_loadgen, run_locust

S = 10**9

# A worker whose clock is three seconds ahead, as far as loadgen can see.
AHEAD = """
import locust, time
from loadgen.users import worker

AHEAD_NS = 3 * 10**9

class Ahead:
    time_ns = staticmethod(lambda: time.time_ns() + AHEAD_NS)

worker.time = Ahead
write = worker.WorkerRun.write

def write_ahead(self, record):
    record.sent_ns += AHEAD_NS
    return write(self, record)

worker.WorkerRun.write = write_ahead
exec(open({file!r}).read())
"""


def counted(bucket, what, by, measurement="llm_request", where=""):
    rows = bucket.rows(f"SELECT {what} AS v FROM {measurement} {where} GROUP BY {by}")
    return {tuple(r[n] for n in by.split(", ")): r["v"] for r in rows}


def test_each_request_and_second_once(runs, sim, bucket):
    a, b = sim("vllm", speed=8), sim("llamacpp", speed=8)
    flags = (
        *engine_flags(a=a, b=b),
        *SHORT,
        *("-u", "4", "--blocks", "2", "--turn-requests", "24", "--output-tokens", "24"),
    )
    run = run_locust(runs, *flags, "--processes", "2", env=bucket.env)
    assert run.code == 0, run.err
    assert "InfluxDB has all" in run.err

    def check():
        host = run.manifest["host"]["name"]
        logged = sum(row["stream"] for one in (a, b) for row in one.log_records())
        assert bucket.value("SELECT count(failed) FROM llm_request") == logged == 2 * (48 + 8)
        each = counted(bucket, "count(failed)", "engine, worker, host")
        assert each == {(e, w, host): 28 for e in "ab" for w in ("w0", "w1")}
        assert bucket.value("SELECT sum(provisional) FROM llm_window") == 0
        tokens = counted(bucket, "sum(tokens)", "engine", "llm_window", "WHERE measured_s > 0")
        assert tokens == pytest.approx({("a",): 48 * 24, ("b",): 48 * 24})
        series = bucket.query("SELECT count(tokens) FROM llm_window GROUP BY *")
        assert len(series) == 4  # an engine's and worker's each: exact and provisional have the same tags

    check()
    again = run_loadgen(runs.parent / "again", "ship", str(run.dir.resolve()), "--again", env=bucket.env)
    assert again.code == 0, again.err
    check()


def test_a_worker_whose_clock_is_wrong_writes_in_the_masters_time(runs, sims, tmp_path):
    (tmp_path / "ahead.py").write_text(AHEAD.format(file=str(ROOT / "locustfiles" / "concurrency.py")))
    flags = (*engine_flags(a=sims[0]), *SHORT, "-u", "2", "--turn-requests", "16")
    began = time.time_ns()
    with Cluster(runs, *flags, workers=1, expect=2) as cluster:
        cluster.worker(scenario=str(tmp_path / "ahead"))
        run = cluster.wait()
    assert run.code == 0, run.err
    offsets = sorted(round(w["clock_offset_ms"], -2) for w in run.manifest["workers"])
    assert offsets == [0, 3000]
    records = run.records
    assert Counter(r["worker"] for r in records) == {"w0": 10, "w1": 10}
    start, end = (next(e["t_ns"] for e in run.events if e["kind"] == k) for k in ("turn_start", "turn_end"))
    for r in run.measured():
        assert start - S // 20 < r["sent_ns"] < end + S // 20
        assert began < r["point_ns"] < run.manifest["end_ns"]
    assert all(began - S <= row["t_ns"] <= run.manifest["end_ns"] for row in run._lines("windows.jsonl"))
    assert not any("Little" in n for n in run.manifest["notes"])
