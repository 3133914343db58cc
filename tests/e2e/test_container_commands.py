"""The commands of the Locust containers, with their environment and in the folder that the image has."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from loadgen.sim.launch import SimProcess
from tests.e2e.conftest import SHORT
from tests.e2e.test_locust_web import Web, finished
from tests.support.compose import services
from tests.support.influxdb import Bucket
from tests.support.locust_run import LocustRun


def start(folder: Path, service: dict[str, Any], name: str = "runs", **replaced: str) -> LocustRun:
    """The service's command as it stands, but for the words in `replaced` (by the name before them), with its
    environment and what is mounted from the repository."""
    for mount in service["volumes"]:
        if mount["type"] == "bind":
            at = folder / Path(mount["target"]).name
            at.unlink(missing_ok=True)
            at.symlink_to(mount["source"])
    program, *words = service["command"]
    assert program == "locust"
    for flag, value in replaced.items():
        words[words.index(f"--{flag.replace('_', '-')}") + 1] = value
    return LocustRun([sys.executable, "-m", "locust", *words], folder / name, service["environment"])


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_the_page_comes_up_its_health_check_says_so_and_it_stops_well(
    tmp_path: Path, sims: tuple[SimProcess, SimProcess]
) -> None:
    port = free_port()
    ports = f"--web-port {port} --master-bind-port {free_port()}"
    urls = {"VLLM_URL": sims[0].url, "LLAMACPP_URL": sims[1].url}
    service = services(tmp_path, LOCUST_ARGS=ports, **urls)["locust"]
    interpreter, *check = service["healthcheck"]["test"][1:]
    assert interpreter == "python"
    check[-1] = check[-1].replace("8089", str(port))

    def healthy(_: object) -> bool:
        return subprocess.run([sys.executable, *check], capture_output=True, timeout=30).returncode == 0

    assert not healthy(None)
    run = start(tmp_path, service, web_host="127.0.0.1")
    try:
        run.wait_for(healthy)
        run.send(signal.SIGTERM)  # docker stop
        assert run.wait().code == 0, run.err
    finally:
        run.stop()


class Cluster(Web):
    """Master and workers as Compose would start them, with one file system, and with ports that are free."""

    def __init__(self, folder: Path, bucket: Bucket, **env: str) -> None:
        self.port, self.master_port = free_port(), free_port()
        made = services(
            folder,
            INFLUXDB_URL=bucket.url,
            INFLUXDB_BUCKET=bucket.name,
            INFLUXDB_WRITE_TOKEN=bucket.token,
            LOCUST_ARGS=f"--web-port {self.port} --master-bind-port {self.master_port} {' '.join(SHORT)}",
            **env,
        )
        self.folder, self._worker = folder, made["worker"]
        self._worker["environment"]["LOCUST_MASTER_NODE_PORT"] = str(self.master_port)
        self.workers: list[LocustRun] = []
        self.run = start(folder, made["locust"], web_host="127.0.0.1")

    def scale(self, number: int) -> None:
        """--scale worker=NUMBER, upwards."""
        for n in range(len(self.workers), number):
            self.workers.append(start(self.folder, self._worker, f"worker-{n}", master_host="127.0.0.1"))
        self.run.wait_for(lambda _: len(self.stats().get("workers", [])) == number)

    def down(self) -> None:
        """As `docker compose stop`: each gets its own signal, all at the same time."""
        for worker in self.workers:
            worker.send(getattr(signal, self._worker["stop_signal"]))
        self.run.send(signal.SIGTERM)
        for one in (self.run, *self.workers):
            one.wait()

    def kill(self) -> None:
        for one in (self.run, *self.workers):
            one.stop()


def test_the_page_leads_workers_who_come_and_go(
    tmp_path: Path, sims: tuple[SimProcess, SimProcess], bucket: Bucket
) -> None:
    """Start, stop, start again, one more worker in the middle of a run, and down with requests in flight."""
    cluster = Cluster(tmp_path, bucket, VLLM_URL=sims[0].url, LLAMACPP_URL=sims[1].url)
    try:
        run = cluster.run
        cluster.scale(2)
        cluster.swarm(user_count=4)
        run.wait_for(finished(cluster, 1))
        assert Counter((r["worker"], r["engine"]) for r in run.measured()) == {
            (worker, engine): 4 for worker in ("w0", "w1") for engine in ("vllm", "llamacpp")
        }
        safety_copies = [run.dir / f"requests-{worker}.jsonl" for worker in ("w0", "w1")]
        assert sum(len(p.read_bytes().splitlines()) for p in safety_copies) == len(run.records)
        first = run.manifest["run"], len(run.records)

        cluster.swarm(user_count=4, turn_requests=40, blocks=20, output_tokens=128)
        run.wait_for(lambda r: len(cluster.runs()) == 2 and len(r.measured()) >= 4)
        cluster.stop()
        run.wait_for(lambda r: r.manifest["state"] == "interrupted" and cluster.state() == "stopped")
        assert set(run.count("outcome")) == {"ok"}

        cluster.swarm(user_count=6, turn_requests=40, blocks=20, output_tokens=128)
        run.wait_for(lambda r: len(cluster.runs()) == 3 and len(r.measured()) >= 4)
        cluster.scale(3)
        run.wait_for(lambda r: "w2" in r.count("worker"))
        cluster.down()
        assert run.manifest["state"] == "interrupted"
        assert set(run.count("outcome")) == {"ok"}
        assert not [e for e in run.events if e["kind"] == "worker_lost"]
        for one in (run, *cluster.workers):
            assert one.code == 0, one.err
            assert "Traceback" not in one.err

        name, requests = first
        delivered = bucket.rows(f"SELECT count(e2e_ms) FROM llm_request WHERE run = '{name}' GROUP BY worker")
        assert sum(row["count"] for row in delivered) == requests
    finally:
        cluster.kill()
