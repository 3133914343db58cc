"""`loadgen telemetry` with a database: as it goes, when the database is away, and later by `loadgen ship`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.influxdb import Bucket
from tests.support.telemetry_child import environment
from tests.support.waiting import wait_for

COMMAND = [sys.executable, "-m", "loadgen.cli"]
COUNT = "SELECT count(power_w) FROM gpu"


def samples(path: Path) -> int:
    lines = (path / "gpu.jsonl").read_text().splitlines()
    return sum(json.loads(line)["kind"] == "sample" for line in lines)


def test_every_sample_is_in_the_database(bucket: Bucket, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "telemetry", "--interval", "0.1", "--duration", "1.5"],
        env={**environment(gpus=2, start_s=9), **bucket.env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (path,) = (tmp_path / "runs").glob("*_telemetry")
    assert bucket.value(COUNT) == samples(path) > 20
    assert bucket.value("SELECT mean(throttle_sw_power_cap) FROM gpu") == 1
    assert bucket.value("SELECT max(power_limit_w) FROM gpu WHERE gpu_name = 'NVIDIA H200'") == 700


def test_a_database_that_is_away_costs_nothing_and_ship_does_the_rest(bucket: Bucket, tmp_path: Path) -> None:
    away = {**bucket.env, "INFLUXDB_URL": "http://127.0.0.1:9"}
    done = subprocess.run(
        [*COMMAND, "telemetry", "--interval", "0.1", "--duration", "0.5"],
        env={**environment(), **away},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    (path,) = (tmp_path / "runs").glob("*_telemetry")
    assert "not all of it is delivered" in done.stderr
    assert f"loadgen ship runs/{path.name} does the rest" in done.stderr
    shipped = subprocess.run(
        [*COMMAND, "ship", str(path)],
        env={**environment(), **bucket.env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shipped.returncode == 0, shipped.stderr
    assert bucket.value(COUNT) == samples(path) > 2


def test_the_live_table_in_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = {
        **environment(gpus=2, start_s=9),
        "TERM": "xterm",
        "COLUMNS": "80",
        "LINES": "40",
        "INFLUXDB_URL": "",
    }
    with subprocess.Popen(
        [*COMMAND, "telemetry", "--interval", "0.1"],
        env=env,
        cwd=tmp_path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen = b""

        def shown() -> bool:
            nonlocal seen
            seen += os.read(ours, 65536)
            return b"held back by" in seen and b"power cap" in seen

        wait_for(shown)
        process.send_signal(signal.SIGINT)
        try:
            while more := os.read(ours, 65536):
                seen += more
        except OSError:  # its end is closed
            pass
        assert process.wait(60) == 0
    os.close(ours)
    assert b"Traceback" not in seen
    assert b"samples: runs/" in seen
