"""A Locust master and workers, each in a process of its own, as a person would start them."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

from tests.support.locust_run import LocustRun, start_locust


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Cluster:
    """`master` is a LocustRun; each `worker()` starts one more process. Use as a context manager."""

    def __init__(
        self,
        runs_dir: Path,
        *flags: str,
        workers: int = 0,
        expect: int | None = None,
        env: dict[str, str] | None = None,
        scenario: str = "concurrency",
    ) -> None:
        self.runs_dir = runs_dir
        self.scenario = scenario
        self.port = free_port()
        self.workers: list[LocustRun] = []
        headless = () if "--web-host" in flags or "-P" in flags else ("--headless",)
        wait = ("--expect-workers", str(workers if expect is None else expect)) if headless else ()
        where = ("--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", str(self.port))
        self.master = start_locust(runs_dir, *headless, *where, *wait, *flags, env=env, scenario=scenario)
        for _ in range(workers):
            self.worker()

    def worker(self, *flags: str, folder: str = "", **options: Any) -> LocustRun:
        """One more. It runs in a folder of its own, as on another machine, if `folder` says so."""
        name = folder or f"worker{len(self.workers)}"
        log_dir = self.runs_dir.parent / name / "runs"
        log_dir.parent.mkdir(exist_ok=True)
        where = ("--worker", "--master-host", "127.0.0.1", "--master-port", str(self.port))
        options.setdefault("scenario", self.scenario)
        self.workers.append(start_locust(log_dir, *where, *flags, **options))
        return self.workers[-1]

    def wait(self, timeout_s: float = 120) -> LocustRun:
        """Until the master has ended and all workers after it."""
        self.master.wait(timeout_s)
        for worker in self.workers:
            worker.wait(30)
        return self.master

    def stop(self) -> None:
        for run in (self.master, *self.workers):
            run.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def children(run: LocustRun) -> list[int]:
    """The worker processes of `--processes`."""
    pid = run.process.pid
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(p) for p in text.split() if b"locust" in Path(f"/proc/{p}/cmdline").read_bytes()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill(run: LocustRun) -> None:
    os.kill(run.process.pid, signal.SIGKILL)
