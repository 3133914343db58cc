"""A sidecar is moved to its core, and its cost is seen from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from asidewatch import cost  # noqa: E402

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")

# Says where it may run, works for 0.3 s of CPU time, says what its own accounts say, waits to be told to end.
WORK = """
import os, sys, time
print(sorted(os.sched_getaffinity(0)), flush=True)
while time.process_time() < 0.3:
    pass
print(time.process_time(), flush=True)
sys.stdin.readline()
"""


def started(tmp_path: Path, *, core: int) -> subprocess.Popen[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(BENCHMARKS / "aside"),
        "BENCH_ASIDE_CORE": str(core),
        "BENCH_ASIDE_LOG": str(tmp_path / "log"),
    }
    # The shipper's name among the arguments is what counts.
    command = [sys.executable, "-c", WORK, "loadgen.sinks.shipper"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def test_a_sidecar_is_moved_named_and_watched(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    process = started(tmp_path, core=core)
    assert process.stdout
    assert json.loads(process.stdout.readline()) == [core]
    own = float(process.stdout.readline())
    assert json.loads((tmp_path / "log").read_text()) == {"name": "shipper", "pid": process.pid}
    seen = cost(process.pid)
    assert seen is not None
    assert seen["cpu_s"] == pytest.approx(own, abs=0.05)
    assert seen["rss_mb"] > 1
    process.communicate("end\n")
    assert cost(process.pid) is None


def test_other_processes_are_left_alone(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(BENCHMARKS / "aside"), "BENCH_ASIDE_CORE": "0"}
    env["BENCH_ASIDE_LOG"] = str(tmp_path / "log")
    code = "import os; print(sorted(os.sched_getaffinity(0)))"
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == sorted(os.sched_getaffinity(0))
    assert not (tmp_path / "log").exists()
