"""`loadgen ship`: what it delivers, what it says, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen import cli
from loadgen.sinks.lock import delivery_lock
from loadgen.store import RunDir, Suite
from tests.support import shipping
from tests.support.influxdb import Bucket, InfluxServer
from tests.unit.metrics.rows import FIVE
from tests.unit.report import made

ROWS = [{**row, "point_ns": shipping.T0 + n} for n, row in enumerate(FIVE)]
Capture = pytest.CaptureFixture[str]


def make_run(runs_dir: Path, **more: Any) -> RunDir:
    return made.make_run(runs_dir, ROWS, **more)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def there(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The bucket, as it stands in the environment."""
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    return bucket


def test_a_run_and_what_can_be_derived_from_it(there: Bucket, tmp_path: Path, capsys: Capture) -> None:
    run = make_run(tmp_path / "runs")
    requests = run.journal_path.read_bytes().count(b"\n")
    assert cli.main(["ship", "latest", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"{run.name}: {requests} lines of requests.jsonl" in out
    assert f"{run.name}: 3 lines of events.jsonl" in out
    assert "derived.jsonl (summary, exact windows) is not made yet" in out
    assert there.query("SHOW MEASUREMENTS") == []

    assert cli.main(["ship"]) == 0
    assert "points delivered to" in capsys.readouterr().out
    assert there.value("SELECT count(failed) FROM llm_request") == requests
    assert there.value("SELECT count(title) FROM run_event WHERE kind = 'turn'") == 1
    assert there.value("SELECT value FROM run_summary WHERE metric = 'ttft_ms'") == 200.0
    assert there.value("SELECT max(provisional) FROM llm_window") == 0

    assert cli.main(["ship"]) == 0
    assert f"{run.name}: 0 points delivered" in capsys.readouterr().out
    assert cli.main(["ship", "--dry-run"]) == 0
    assert f"{run.name}: nothing is missing" in capsys.readouterr().out


def test_again_fills_a_bucket_that_was_emptied(there: Bucket, tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    assert cli.main(["ship"]) == 0
    stored = there.value("SELECT count(failed) FROM llm_request")
    there.server.drop(there.name)
    there.server.create(there.name)
    assert cli.main(["ship"]) == 0
    assert there.query("SELECT failed FROM llm_request") == []
    assert cli.main(["ship", "--again"]) == 0
    assert there.value("SELECT count(failed) FROM llm_request") == stored > 0


def test_a_suite_is_all_its_runs(there: Bucket, tmp_path: Path) -> None:
    suite = Suite.create(tmp_path / "runs")
    for scenario in ("single_user", "concurrency"):
        make_run(tmp_path / "runs", scenario=scenario, suite=suite)
    assert cli.main(["ship", suite.name]) == 0
    found = there.rows("SELECT count(failed) FROM llm_request GROUP BY scenario")
    assert {row["scenario"] for row in found} == {"single_user", "concurrency"}


def test_a_recording_of_telemetry(there: Bucket, tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "runs", "telemetry")
    run.manifest_path.write_text("{}")
    (run.path / "gpu.jsonl").write_bytes(shipping.gpu_facts() + b"\n" + shipping.gpu(1) + b"\n")
    assert cli.main(["ship"]) == 0
    assert there.rows("SELECT power_w FROM gpu GROUP BY gpu_name, run") == [
        {"gpu_name": "NVIDIA H200", "run": run.name, "time": shipping.T0 + 1000, "power_w": 100}
    ]


def test_workers_journals_count_once(there: Bucket, tmp_path: Path) -> None:
    run = shipping.new_run(tmp_path / "runs")
    lines = {w: [shipping.request(n, w) + b"\n" for n in range(50)] for w in ("w1", "w2")}
    run.journal_path.write_bytes(b"".join(lines["w1"] + lines["w2"][:30]))  # the master lacks 20 of w2
    for worker, own in lines.items():
        run.worker_journal_path(worker).write_bytes(b"".join(own))
    assert cli.main(["ship"]) == 0
    found = there.rows("SELECT count(failed) AS n FROM llm_request GROUP BY worker")
    assert {row["worker"]: row["n"] for row in found} == {"w1": 50, "w2": 50}


def test_refused_lines_are_told_and_kept(there: Bucket, tmp_path: Path, capsys: Capture) -> None:
    run = make_run(tmp_path / "runs")
    run.journal_path.write_bytes(run.journal_path.read_bytes() + b"nonsense\n{\n")
    assert cli.main(["ship"]) == 1
    err = capsys.readouterr().err
    assert "2 lines could not be delivered, see " in err
    letters = [json.loads(line) for line in (run.path / "dead-letter.jsonl").read_text().splitlines()]
    assert [(letter["line"], letter["why"]) for letter in letters] == [
        ("nonsense", "it is not JSON"),
        ("{", "it is not JSON"),
    ]
    assert cli.main(["ship"]) == 0  # nothing new that could be delivered


def test_a_bucket_that_is_not_there(
    there: Bucket, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "runs")
    monkeypatch.setenv("INFLUXDB_BUCKET", "nowhere")
    assert cli.main(["ship"]) == 1
    err = capsys.readouterr().err
    assert "lines are left: InfluxDB at" in err
    assert "has no bucket 'nowhere'" in err
    assert there.token not in err


def test_a_summary_that_cannot_be_made_is_what_is_left(
    there: Bucket, tmp_path: Path, capsys: Capture
) -> None:
    run = make_run(tmp_path / "runs")
    (run.path / "derived.jsonl").mkdir()
    assert cli.main(["ship"]) == 1
    assert "the summary is left: " in capsys.readouterr().err


def test_somebody_else_is_at_it(there: Bucket, tmp_path: Path, capsys: Capture) -> None:
    run = make_run(tmp_path / "runs")
    with delivery_lock(run.path):
        assert cli.main(["ship"]) == 1
    assert "is being delivered already, by process" in capsys.readouterr().err


def test_a_run_that_was_killed(there: Bucket, tmp_path: Path, capsys: Capture) -> None:
    run = make_run(tmp_path / "runs", state="running")
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine": "e", "ttft')
    assert cli.main(["ship"]) == 0
    assert "it was killed, or goes on" in capsys.readouterr().out


def test_without_an_address_it_is_a_mistake(tmp_path: Path, capsys: Capture) -> None:
    make_run(tmp_path / "runs")
    assert cli.main(["ship"]) == 2
    assert "InfluxDB has no address" in capsys.readouterr().err


def test_a_database_that_is_down_is_given_up(
    influxdb: InfluxServer, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "runs")
    monkeypatch.setenv("INFLUXDB_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("INFLUXDB_TOKEN", "t")
    monkeypatch.setattr("loadgen.sinks.sending.GIVE_UP_S", 0.2)
    assert cli.main(["ship"]) == 1
    err = capsys.readouterr().err
    assert "does not answer" in err
    assert "lines are left" in err
