"""What the live page costs the process that leads a run.

    python benchmarks/live_page.py [--updates 100] [--engines 4] [--gpus 4] [--hours 1]

Locust's web server runs in this process, a browser's questions come from another. An hour of made rows is
in the page's history before anything is measured. Then, as in a run, three seconds of rows are read from the
run's files and the page asks for what is new, again and again without the waiting between. Measured is this
process's CPU time; the share of a core is what that makes at one reading a second and 20 questions a minute.
"""

from __future__ import annotations

import locust

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gevent
from machine import facts
from truth import HERE

ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from loadgen.record import RequestRecord  # noqa: E402
from loadgen.store import RunDir  # noqa: E402
from loadgen.webui import Live, install  # noqa: E402

LIMIT_PERCENT = 3.0
QUESTIONS_A_MINUTE = 20
RECORDS = 10_000
ASKER = """
import json, sys, urllib.request
address, epoch, cursor, seen = sys.argv[1], "", 0, ""
for line in sys.stdin:
    if line.strip() == "all":
        cursor = 0
    with urllib.request.urlopen(f"{address}/llm/data?epoch={epoch}&cursor={cursor}&seen={seen}") as answer:
        text = answer.read()
    found = json.loads(text)
    epoch, cursor = found["epoch"], found["cursor"]
    seen = max([t for track in found["tracks"] for t in track["t"][-1:]] or [seen])
    print(len(text), sum(len(track["t"]) for track in found["tracks"]), flush=True)
"""


class Site:
    """Locust's web server with the page, and a run whose files are written by this script."""

    def __init__(self, folder: Path, engines: Sequence[str], gpus: int) -> None:
        sys.argv = ["locust"]
        self.environment = locust.env.Environment()
        self.environment.create_local_runner()
        ui = self.environment.create_web_ui(host="127.0.0.1", port=0, delayed_start=True)
        options = {
            "web_base_path": "",
            "web_login": False,
            "web_host": "127.0.0.1",
            "web_host_display_name": "",
        }
        found = install(self.environment, SimpleNamespace(**options))
        assert found is not None
        self.live: Live = found
        ui.start()
        while ui.server is None or not ui.server.started:
            gevent.sleep(0.01)
        self.address = f"http://127.0.0.1:{ui.server.server_port}"
        self.dir = RunDir.create(folder, "concurrency")
        self.engines, self.gpus = engines, gpus
        run = SimpleNamespace(
            name=self.dir.name,
            dir=self.dir,
            lanes=[SimpleNamespace(name=name, info=None) for name in engines],
            settings=SimpleNamespace(scenario="concurrency", slo=None),
            manifest=SimpleNamespace(notes=[]),
        )
        self.live.opened(run, None)  # type: ignore[arg-type]
        assert self.live._greenlet is not None
        self.live._greenlet.kill()  # this script is the clock
        self.second = int(time.time()) - 3600

    def write(self, seconds: int) -> None:
        """The next rows of all engines and GPUs, and a request an engine and second."""
        windows, engine, gpu = [], [], []
        for _ in range(seconds):
            self.second += 1
            t_ns, turn_s = self.second * 10**9, self.second % 100
            for name in self.engines:
                windows.append(
                    {"t_ns": t_ns, "engine": name, "worker": "local", "phase": "measure", "turn": 1}
                    | {"turn_s": turn_s, "measured_s": 1.0, "tokens": 800 + turn_s, "in_flight": 16}
                    | {"users": 16, "completions": 3, "failures": 0, "loop_lag_ms": 0.4, "cpu_percent": 12.5}
                )
                engine.append({"t_ns": t_ns, "engine": name, "running": 16, "waiting": turn_s})
                record = {"ttft_ms": 180.0 + turn_s, "tpot_ms": 20.0, "output_tokens": 256, "events": 256}
                self.live.record(RequestRecord(engine=name, turn=1, **record))  # type: ignore[arg-type]
            for n in range(self.gpus):
                gpu.append(
                    {"kind": "sample", "t_ns": t_ns, "host": "gpu-host", "gpu": n, "sm_clock_mhz": 1470}
                    | {"temperature_c": 60 + turn_s / 10, "power_w": 650.5, "memory_used_bytes": 70 * 2**30}
                )
        for path, rows in (
            (self.dir.windows_path, windows),
            (self.dir.engine_path, engine),
            (self.dir.gpu_path, gpu),
        ):
            with open(path, "a") as f:
                f.writelines(json.dumps(row) + "\n" for row in rows)

    def tick(self) -> None:
        """One reading, as once a second in a run."""
        assert self.live._feed is not None
        self.live._feed._wall_s = lambda: float(self.second + 1)
        self.live._feed.tick()


class Asker:
    """A browser's part, in a process of its own."""

    def __init__(self, address: str) -> None:
        command = [sys.executable, "-c", ASKER, address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what: str = "new") -> tuple[int, int]:
        """Bytes and seconds of the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n".encode())
        self._process.stdin.flush()
        size, seconds = self._process.stdout.readline().split()
        return int(size), int(seconds)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def bench(updates: int, engines: int, gpus: int, hours: float) -> dict[str, Any]:
    """Milliseconds of CPU a reading, a question and a page that is opened; their share of a core."""
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), [f"engine-{n}" for n in range(engines)], gpus)
        for _ in range(int(hours * 60)):
            site.write(60)
            site.tick()
        asker = Asker(site.address)
        opened = [cpu_ms(lambda: asker.ask("all")) for _ in range(5)]
        reading, asking = [], []
        for _ in range(updates):
            site.write(3)
            reading.append(cpu_ms(site.tick)[0])
            asking.append(cpu_ms(asker.ask))
        asker.stop()
        made = [RequestRecord(engine=site.engines[0], turn=1, **_request(n)) for n in range(RECORDS)]
        counting = cpu_ms(lambda: [site.live.record(one) for one in made])[0]
        buckets = site.live.history.buckets
    ms = {"reading": statistics.fmean(reading), "question": statistics.fmean(a for a, _ in asking)}
    # A reading here is of three seconds' rows, so it is an upper bound of one of a second's.
    without, with_page = ms["reading"] / 10, ms["reading"] / 10 + ms["question"] * QUESTIONS_A_MINUTE / 600
    return {
        "machine": facts(),
        "tracks": engines + gpus,
        "hours": hours,
        "buckets": buckets,
        "reading_ms": ms["reading"],
        "question_ms": ms["question"],
        "question_ms_most": max(a for a, _ in asking),
        "question_bytes": statistics.fmean(size for _, (size, _) in asking),
        "record_us": counting * 1000 / RECORDS,
        "opened_ms": statistics.fmean(a for a, _ in opened),
        "opened_bytes": opened[0][1][0],
        "opened_seconds": opened[0][1][1],
        "percent_of_a_core_unwatched": without,
        "percent_of_a_core": with_page,
        "limit_percent": LIMIT_PERCENT,
        "holds": with_page < LIMIT_PERCENT,
    }


def _request(n: int) -> dict[str, Any]:
    """A request's figures, no two in a row alike."""
    spread = n * 7919 % 1000 / 10
    return {"ttft_ms": 100 + spread, "tpot_ms": 10 + spread, "read_lag_ms": spread, "events": 256}


def cpu_ms(what: Callable[[], Any]) -> tuple[float, Any]:
    """CPU time of this process, all its threads, and what came out."""
    before = time.process_time_ns()
    result = what()
    return (time.process_time_ns() - before) / 1e6, result


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=100, metavar="N", help="questions (default: 100)")
    parser.add_argument("--engines", type=int, default=4, metavar="N", help="engines (default: 4)")
    parser.add_argument("--gpus", type=int, default=4, metavar="N", help="GPUs (default: 4)")
    parser.add_argument("--hours", type=float, default=1.0, metavar="H", help="history before (default: 1)")
    parser.add_argument("--json", type=Path, default=HERE / "out" / "live_page.json", metavar="FILE")
    args = parser.parse_args(argv)
    found = bench(args.updates, args.engines, args.gpus, args.hours)
    print(
        f"{found['tracks']} tracks, {found['buckets']:,} points in memory after {found['hours']:g} h\n"
        f"a reading of what is new   {found['reading_ms']:6.2f} ms of CPU\n"
        f"a question of the page     {found['question_ms']:6.2f} ms, {found['question_bytes']:,.0f} bytes\n"
        f"a request that has ended   {found['record_us'] / 1000:6.3f} ms\n"
        f"the page opened            {found['opened_ms']:6.2f} ms, {found['opened_bytes']:,} bytes\n"
        f"share of a core: {found['percent_of_a_core_unwatched']:.2f} % with nobody watching, "
        f"{found['percent_of_a_core']:.2f} % with a page open (wanted: < {LIMIT_PERCENT:g} %)"
    )
    args.json.parent.mkdir(exist_ok=True)
    args.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    sys.exit(main())
