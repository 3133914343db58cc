"""The shipper as a process: beside a run, after it, twice at once, without a database, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import psutil
import pytest

from loadgen.store import RunDir
from tests.support import shipping
from tests.support.influxdb import Bucket, InfluxServer
from tests.support.shipping import ROOT, Shipper, wait_until


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = shipping.new_run(tmp_path / "runs")
    made.journal_path.write_bytes(b"".join(shipping.request(n) + b"\n" for n in range(100)))
    return made


@pytest.fixture
def mortal(influxdb: InfluxServer, tmp_path: Path) -> Iterator[Bucket]:
    """In a database that may be stopped."""
    with InfluxServer(tmp_path / "db") as server:
        server.create("mine")
        yield Bucket(server, "mine")


def count(bucket: Bucket) -> int:
    return bucket.value("SELECT count(failed) FROM llm_request") or 0


def append(run: RunDir, first: int, last: int) -> None:
    with open(run.journal_path, "ab") as f:
        f.write(b"".join(shipping.request(n) + b"\n" for n in range(first, last)))


def test_follows_a_run_and_ends_with_it(run: RunDir, bucket: Bucket) -> None:
    shipper = Shipper(run, bucket)
    wait_until(lambda: count(bucket) == 100)
    append(run, 100, 150)
    wait_until(lambda: count(bucket) == 150)
    assert shipper.process.poll() is None
    assert psutil.Process(shipper.process.pid).nice() > 0
    assert shipper.end() == 0
    last = shipper.status
    assert (last["state"], last["left"], last["dead"], last["why"]) == ("done", 0, 0, "")
    assert last["lines"] > 150  # and what was derived
    assert bucket.value("SELECT count(value) FROM run_summary") > 0
    assert shipper.err == ""


def test_ctrl_c_in_the_terminal_is_not_for_it(run: RunDir, bucket: Bucket) -> None:
    shipper = Shipper(run, bucket)
    wait_until(lambda: count(bucket) == 100)
    shipper.process.send_signal(signal.SIGINT)
    append(run, 100, 120)
    wait_until(lambda: count(bucket) == 120)
    assert shipper.end() == 0


def test_a_second_one_refuses_and_the_first_goes_on(run: RunDir, bucket: Bucket) -> None:
    first = Shipper(run, bucket)
    wait_until(lambda: count(bucket) == 100)
    second = Shipper(run, bucket)
    assert second.wait() == 2
    assert f"is being delivered already, by process {first.process.pid}" in second.status["why"]
    append(run, 100, 110)
    assert first.end() == 0
    assert count(bucket) == 110


def test_killed_with_its_run_it_still_delivers(run: RunDir, bucket: Bucket) -> None:
    """The parent is killed with -9: the shipper's input ends, and it finishes by itself."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(run.path), bucket.url, bucket.name],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT), "INFLUXDB_TOKEN": bucket.token},
        text=True,
    )
    assert parent.stdout is not None
    shipper = psutil.Process(int(parent.stdout.readline()))
    append(run, 100, 160)
    parent.kill()
    parent.wait()
    psutil.wait_procs([shipper], timeout=30)
    assert not shipper.is_running()
    assert count(bucket) == 160
    assert (run.path / "derived.jsonl").exists()


PARENT = """
import json, subprocess, sys, time
run, url, bucket = sys.argv[1:]
command = [sys.executable, "-m", "loadgen.sinks.shipper", run]
child = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
child.stdin.write(json.dumps({"influxdb": {"url": url, "bucket": bucket}}) + "\\n")
child.stdin.flush()
print(child.pid, flush=True)
time.sleep(600)
"""


def test_an_absent_database_is_waited_for(run: RunDir, mortal: Bucket) -> None:
    mortal.server.kill9()
    shipper = Shipper(run, mortal)
    wait_until(lambda: shipper.status.get("state") == "waiting")
    assert "in trouble (503)" in shipper.status["why"]
    assert (shipper.status["lines"], shipper.status["left"]) == (0, 100)
    mortal.server.restart()
    wait_until(lambda: count(mortal) == 100)
    assert shipper.end() == 0


def test_a_database_that_stays_away_is_given_up_at_the_end(run: RunDir, mortal: Bucket) -> None:
    mortal.server.kill9()
    shipper = Shipper(run, mortal)
    wait_until(lambda: shipper.status.get("state") == "waiting")
    assert shipper.end(30) == 1
    last = shipper.status
    assert (last["state"], last["left"], "503" in last["why"]) == ("stopped", 100, True)
    mortal.server.restart()
    assert Shipper(run, mortal).end() == 0  # later
    assert count(mortal) == 100


def test_a_database_that_hangs_is_given_up_too(run: RunDir, mortal: Bucket) -> None:
    mortal.server.pause()
    try:
        shipper = Shipper(run, mortal)
        assert shipper.end(60) == 1
    finally:
        mortal.server.resume()
    assert shipper.status["state"] == "stopped"
    assert "Read timed out" in shipper.status["why"]


@pytest.mark.parametrize(
    ("change", "says"),
    [({"name": "nowhere"}, "has no bucket 'nowhere' (404)"), ({}, "does not know the token (401)")],
)
def test_what_only_a_person_can_put_right_stops_it(
    run: RunDir, bucket: Bucket, change: dict[str, str], says: str
) -> None:
    env = {} if change else {"INFLUXDB_TOKEN": "another-token"}
    shipper = Shipper(run, replace(bucket, **change), env)
    assert shipper.wait() == 1
    assert (shipper.status["state"], shipper.status["left"]) == ("stopped", 100)
    assert says in shipper.status["why"]
    assert Shipper(run, bucket).end() == 0
    assert count(bucket) == 100


def test_a_run_that_is_older_than_the_bucket_keeps_points(run: RunDir, bucket: Bucket) -> None:
    bucket.query(f'ALTER RETENTION POLICY autogen ON "{bucket.name}" DURATION 1h SHARD DURATION 1h')
    old = run.journal_path.read_bytes().replace(b'"point_ns":17', b'"point_ns":16')
    run.journal_path.write_bytes(old)
    shipper = Shipper(run, bucket)
    assert shipper.wait() == 1
    assert "keeps no points as old as this run's" in shipper.status["why"]
    assert (shipper.status["left"], shipper.status["dead"]) == (100, 0)
    bucket.query(f'ALTER RETENTION POLICY autogen ON "{bucket.name}" DURATION INF')
    assert Shipper(run, bucket).end() == 0
    assert count(bucket) == 100


def test_without_a_token_it_says_so(run: RunDir, bucket: Bucket) -> None:
    shipper = Shipper(run, bucket, {"INFLUXDB_TOKEN": ""})
    assert shipper.wait() == 2
    assert "needs a token: set the environment variable INFLUXDB_TOKEN" in shipper.status["why"]
    assert shipper.err == ""


def test_the_token_is_in_no_file_and_no_argument(run: RunDir, bucket: Bucket) -> None:
    with open(run.journal_path, "ab") as f:
        f.write(b"not json\n")
    shipper = Shipper(run, bucket)
    wait_until(lambda: (run.path / "dead-letter.jsonl").exists())
    assert bucket.token not in " ".join(psutil.Process(shipper.process.pid).cmdline())
    assert shipper.end() == 0
    assert [p.name for p in run.path.iterdir() if bucket.token.encode() in p.read_bytes()] == []
    assert bucket.token not in str(shipper.heard) + shipper.err


def test_windows_that_are_sent_late_do_not_undo_the_exact_ones(run: RunDir, bucket: Bucket) -> None:
    """A bucket gets provisional windows after exact ones when delivery begins anew: exact ones come again."""
    second = shipping.T0 // 10**9 * 10**9
    events = [
        {"t_ns": second, "mono_ns": 0, "kind": "run_start"},
        {"t_ns": second + 5 * 10**9, "mono_ns": 5 * 10**9, "kind": "run_end"},
    ]
    run.events_path.write_bytes(b"".join(orjson.dumps(e) + b"\n" for e in events))
    windows = run.path / "windows.jsonl"
    windows.write_bytes(b"".join(shipping.window(n, t_ns=second + n // 2 * 10**9) + b"\n" for n in range(8)))
    for _ in range(2):
        assert Shipper(run, bucket).end() == 0
        assert bucket.value("SELECT max(provisional) FROM llm_window") == 0
        windows.write_bytes(windows.read_bytes() + shipping.window(8, t_ns=second + 4 * 10**9) + b"\n")
    rows = bucket.rows('SELECT "users", provisional FROM llm_window WHERE "users" > 0')
    assert {(r["users"], r["provisional"]) for r in rows} == {(16, 0)}  # the generator's own fields stay
