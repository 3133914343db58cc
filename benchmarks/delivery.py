"""How many points a second the shipper delivers with one core to itself.

    python benchmarks/delivery.py [--points 60000] [--passes 3]

Journals as a run leaves them are delivered to a real InfluxDB (1.6 with the v2 write API in front, as in the
tests), which has another core. Counted are points that the database holds in the end. Two kinds of journal:
requests of 256 events each, the dearest there are, and samples of GPUs, engines and windows. The same again
against a server that takes everything and keeps nothing: what the shipper could do with a faster database.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from machine import facts
from truth import HERE, BenchError, cores

ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from loadgen.store import RunDir  # noqa: E402
from tests.support import shipping  # noqa: E402
from tests.support.influxdb import Bucket, InfluxError, InfluxServer, NotInstalled  # noqa: E402

OUT = HERE / "out"
EVENTS = 256
KINDS = ("requests", "samples")
MEASUREMENTS = {"requests": ("llm_request",), "samples": ("gpu", "engine", "llm_window")}
SHIP = """
import json, os, sys, threading, time
from pathlib import Path
core, run, url, bucket = sys.argv[1:]
os.sched_setaffinity(0, {int(core)})
from loadgen.config import InfluxdbSpec
from loadgen.sinks.delivery import Delivery
from loadgen.sinks.influxdb import InfluxWriter
from loadgen.store import RunDir
over = threading.Event()
over.set()
spec = InfluxdbSpec(url=url, bucket=bucket)
delivery = Delivery(RunDir.open(Path(run)), InfluxWriter(spec, spec.token()), ending=over)
wall, cpu = time.perf_counter(), time.process_time()
while delivery.deliver_new():
    pass
status = Path("/proc/self/status").read_text()  # getrusage's would be the parent's, where that had more
print(json.dumps({
    "points": delivery.lines,
    "wall_s": time.perf_counter() - wall,
    "cpu_s": time.process_time() - cpu,
    "rss_mib": int(status.split("VmHWM:")[1].split()[0]) / 1024,
}))
"""
TAKE = """
import os, socket, sys, threading
os.sched_setaffinity(0, {int(sys.argv[1])})
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
def serve(connection):
    data = b""
    while True:
        while b"\\r\\n\\r\\n" not in data:
            more = connection.recv(1 << 20)
            if not more:
                return
            data += more
        head, _, body = data.partition(b"\\r\\n\\r\\n")
        fields = dict(line.lower().split(b": ") for line in head.split(b"\\r\\n")[1:])
        length = int(fields[b"content-length"])
        left = length - len(body)
        while left > 0:
            left -= len(connection.recv(min(left, 1 << 20)))
        data = body[length:]
        connection.sendall(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""


def make_run(folder: Path, kind: str, points: int) -> RunDir:
    run = shipping.new_run(folder)
    if kind == "requests":
        write(run.journal_path, (shipping.request(n, events=EVENTS) for n in range(points)))
        return run
    third = points // 3
    write(run.path / "gpu.jsonl", (shipping.gpu_facts(), *(shipping.gpu(n) for n in range(third))))
    write(run.path / "engine.jsonl", (shipping.engine(n) for n in range(third)))
    write(run.path / "windows.jsonl", (shipping.window(n) for n in range(points - 2 * third)))
    return run


def write(path: Path, lines: Sequence[bytes] | Iterator[bytes]) -> None:
    with open(path, "wb") as f:
        f.writelines(line + b"\n" for line in lines)


def ship(run: RunDir, core: int, url: str, bucket: str, token: str) -> dict[str, float]:
    """Deliver a run from its beginning in a process of its own; what that took."""
    (run.path / "delivery.json").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", SHIP, str(core), str(run.path), url, bucket],
        env={**os.environ, "PYTHONPATH": str(ROOT), "INFLUXDB_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchError(f"the shipper failed: {done.stderr[-500:]}")
    return dict(json.loads(done.stdout))


@contextmanager
def database(core: int) -> Iterator[InfluxServer]:
    """Started on its core: children inherit what their parent may use."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        with tempfile.TemporaryDirectory() as folder, InfluxServer(Path(folder)) as server:
            os.sched_setaffinity(0, mine)
            yield server
    finally:
        os.sched_setaffinity(0, mine)


@contextmanager
def taker(core: int) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", TAKE, str(core)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def busy_s(server: InfluxServer) -> float:
    """CPU seconds of the database and of what is in front of it."""
    total = 0.0
    for pid in server.pids:
        for process in (psutil.Process(pid), *psutil.Process(pid).children()):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def one_pass(
    run: RunDir, kind: str, server: InfluxServer, url: str, core: int
) -> dict[str, dict[str, float]]:
    name = f"bench_{time.time_ns()}"
    server.create(name)
    before = busy_s(server)
    result = ship(run, core, server.url, name, server.token)
    result["database_cpu_s"] = busy_s(server) - before
    held = sum(Bucket(server, name).value(f"SELECT count(/{FIELD[m]}/) FROM {m}") for m in MEASUREMENTS[kind])
    server.drop(name)
    if held != result["points"]:
        raise BenchError(f"{result['points']:,} points were delivered, and the database holds {held:,}")
    return {"InfluxDB 1.6": result, "takes everything": ship(run, core, url, "none", server.token)}


FIELD = {"llm_request": "^failed$", "gpu": "^power_w$", "engine": "^running$", "llm_window": "^tokens$"}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=60_000)
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args(argv)
    passes: dict[str, list[dict[str, float]]] = {}
    try:
        other, ours = cores()
        with tempfile.TemporaryDirectory() as folder, database(other) as server, taker(other) as url:
            runs = {kind: make_run(Path(folder) / kind, kind, args.points) for kind in KINDS}
            for _ in range(args.passes):
                for kind, run in runs.items():
                    for where, result in one_pass(run, kind, server, url, ours).items():
                        passes.setdefault(f"{kind}, {where}", []).append(result)
    except (BenchError, InfluxError, NotInstalled) as e:
        print(f"benchmarks/delivery.py: {e}", file=sys.stderr)
        return 1
    print(f"{'journal, server':32} {'points/s':>9} {'shipper us':>11} {'database us':>12} {'RSS MiB':>8}")
    for name, results in passes.items():
        print(row(name, results))
    print("us: CPU a point, medians of the passes; the shipper has one core, the server another")
    OUT.mkdir(exist_ok=True)
    out: dict[str, Any] = {"machine": facts(), "passes": passes}
    (OUT / "delivery.json").write_text(json.dumps(out, indent=1) + "\n")
    return 0


def row(name: str, results: list[dict[str, float]]) -> str:
    def middle(key: str) -> float:
        return statistics.median(r[key] / r["points"] for r in results if key in r)

    rate = statistics.median(r["points"] / r["wall_s"] for r in results)
    theirs = f"{middle('database_cpu_s') * 1e6:12.1f}" if "database_cpu_s" in results[0] else f"{'-':>12}"
    rss = max(r["rss_mib"] for r in results)
    return f"{name:32} {rate:9,.0f} {middle('cpu_s') * 1e6:11.1f} {theirs} {rss:8.0f}"


if __name__ == "__main__":
    sys.exit(main())
