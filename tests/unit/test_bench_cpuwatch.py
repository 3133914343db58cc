"""CPU time of a part of another process's life."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from cpuwatch import CpuWatch

pytestmark = pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux's /proc")

# Works for 0.3 s of CPU time, says when that was and what its own accounts say, then idles until told to end.
WORK = """
import time, resource, sys
def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime
sys.stdin.readline()
t0, c0 = time.time_ns(), cpu()
while cpu() - c0 < 0.3:
    pass
print(t0, time.time_ns(), cpu() - c0, flush=True)
sys.stdin.readline()
"""


def test_the_same_as_the_process_s_own_accounts() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    watch = CpuWatch(process.pid, interval_s=0.01)
    process.stdin.write("go\n")
    process.stdin.flush()
    start, end, own = process.stdout.readline().split()
    watch.settle()
    process.communicate("end\n")
    watch.stop()
    assert watch.cpu_s(int(start), int(end)) == pytest.approx(float(own), abs=0.05)
    assert watch.peak_rss_mb > 1


def test_between_two_samples_it_is_interpolated() -> None:
    watch = CpuWatch.__new__(CpuWatch)
    watch._times = [1000, 2000, 3000]
    watch._cpu = [0, 500_000_000, 600_000_000]
    assert watch.cpu_s(1500, 3000) == pytest.approx(0.35)
    assert watch.cpu_s(0, 10_000) == pytest.approx(0.6)
    assert watch.cpu_since_s(2500) == pytest.approx(0.05)
