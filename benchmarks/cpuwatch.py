"""CPU time of another process against the wall clock: a part of its life can be cut out afterwards."""

from __future__ import annotations

import bisect
import threading
import time
from pathlib import Path


class CpuWatch:
    """Samples /proc/PID/task/*/schedstat (nanoseconds on a CPU, user and system) in a thread of this process.

    A thread that ends takes its time out of /proc, so the highest value seen of each thread is what counts.
    """

    def __init__(self, pid: int, interval_s: float = 0.05) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._status = Path(f"/proc/{pid}/status")
        self._interval_s = interval_s
        self._seen: dict[str, int] = {}
        self._times: list[int] = []
        self._cpu: list[int] = []
        self.peak_rss_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def settle(self) -> None:
        """Wait for two more samples, so that what has happened until now is among them."""
        target = len(self._times) + 2
        while len(self._times) < target and self._thread.is_alive():
            self._stop.wait(self._interval_s)

    def cpu_s(self, from_wall_ns: int, to_wall_ns: int) -> float:
        """CPU seconds between two points of the wall clock, interpolated between samples."""
        return (self._at(to_wall_ns) - self._at(from_wall_ns)) / 1e9

    def cpu_since_s(self, from_wall_ns: int) -> float:
        """CPU seconds from a point of the wall clock to the last sample."""
        return (self._cpu[-1] - self._at(from_wall_ns)) / 1e9

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._sample()
            except OSError:  # the process has ended
                return
            self._stop.wait(self._interval_s)

    def _sample(self) -> None:
        now = time.time_ns()
        for task in self._tasks.iterdir():
            try:
                self._seen[task.name] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
        self._times.append(now)
        self._cpu.append(sum(self._seen.values()))
        for line in self._status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                self.peak_rss_mb = int(line.split()[1]) / 1024

    def _at(self, wall_ns: int) -> float:
        i = bisect.bisect_left(self._times, wall_ns)
        if i == 0:
            return self._cpu[0]
        if i == len(self._times):
            return self._cpu[-1]
        t0, t1, c0, c1 = self._times[i - 1], self._times[i], self._cpu[i - 1], self._cpu[i]
        return c0 + (c1 - c0) * (wall_ns - t0) / (t1 - t0)
