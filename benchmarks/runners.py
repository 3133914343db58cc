"""One function a client: run it on its own core against a truthd of its own; what it cost and reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accuracy import compare
from asidewatch import AsideWatch
from cpuwatch import CpuWatch
from truth import HERE, BenchError, Timing, Truth, build, cores

ROOT = HERE.parent
CLIENTS = HERE / "clients"
SWEEP_US = 3000


@dataclass(frozen=True)
class Load:
    """`streams` at once, each `rounds` times, `tokens` long."""

    streams: int
    rounds: int
    tokens: int
    timing: Timing

    @property
    def events(self) -> int:
        """JSON events that a client receives: tokens, finish, usage, and the role where it has its own."""
        each = self.tokens + 2 + (self.timing.role_ms is not None)
        return self.streams * self.rounds * each

    @property
    def seconds(self) -> float:
        return self.rounds * (self.timing.ttft_ms + self.tokens * self.timing.itl_ms) / 1000


@dataclass
class Result:
    """`cpu_s`: from the first measured request to the last response; `cpu_to_exit_s`: to the very end.
    `aside`: what each sidecar cost in all, {"shipper": {"cpu_s": ..., "rss_mb": ...}}."""

    cpu_s: float
    rss_mb: float | None = None
    cpu_to_exit_s: float | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    aside: dict[str, dict[str, float]] = field(default_factory=dict)


def measure(client: str, load: Load) -> dict[str, Any]:
    """Figures of one run of one client: cost in microseconds per event, errors in milliseconds."""
    with Truth(load.timing) as truth:
        result = RUNNERS[client](truth, load)
    figures: dict[str, Any] = {
        "client": client,
        "cpu_s": result.cpu_s,
        "us_per_event": result.cpu_s / load.events * 1e6,
        "rss_mb": result.rss_mb,
    }
    if result.cpu_to_exit_s is not None:
        figures["us_per_event_to_exit"] = result.cpu_to_exit_s / load.events * 1e6
    if result.rows:
        figures |= compare(result.rows, truth.streams)
        wanted = load.streams * load.rounds
        if figures["responses"] != wanted:
            raise BenchError(
                f"{client}: {figures['responses']} of {wanted} responses are complete in its report"
            )
    return figures


def _floor(delay_us: int) -> Callable[[Truth, Load], Result]:
    def run(truth: Truth, load: Load) -> Result:
        arguments = [str(truth.port), str(load.streams), str(load.rounds), str(load.tokens), str(delay_us)]
        out, rss = _run([str(build("floor")), *arguments], load)
        return Result(json.loads(out)["cpu_s"], rss)

    return run


def _script(name: str, *flags: str) -> Callable[[Truth, Load], Result]:
    def run(truth: Truth, load: Load) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.jsonl"
            sizes = [str(load.streams), str(load.rounds), str(load.tokens)]
            out, rss = _run([sys.executable, str(CLIENTS / name), truth.url, *sizes, str(rows), *flags], load)
            return _reported(out, rows, rss)

    return run


def _fasthttp(truth: Truth, load: Load) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        n = str(load.streams)
        env = {"STREAMS": n, "ROUNDS": str(load.rounds), "TOKENS": str(load.tokens), "ROWS": str(rows)}
        command = [sys.executable, "-m", "locust", "-f", str(CLIENTS / "fasthttp_user.py"), "--headless"]
        command += ["-u", n, "-r", n, "-H", truth.url, "--only-summary"]
        out, rss = _run(command, load, **env)
        return _reported(out, rows, rss)


def ours(
    truth: Truth,
    load: Load,
    *flags: str,
    env: Mapping[str, str] | None = None,
    look: Callable[[Path], None] | None = None,
) -> Result:
    """A whole run as a person starts it: Locust, records, journal, live figures, the summary at the end; its
    sidecars work on the server's core. `look` is shown the run directory before that is removed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "locust", "-f", str(ROOT / "locustfiles" / "concurrency.py"), "--headless",
            "--engine", f"truth=openai:{truth.url}", "-u", str(load.streams),
            "--turn-requests", str(load.streams * load.rounds), "--blocks", "1", "--warmup-requests", "1",
            "--output-tokens", str(load.tokens), "--runs-dir", folder, *flags,
        ]  # fmt: skip
        log = Path(folder) / "aside.jsonl"
        more = {"INFLUXDB_URL": "", **(env or {})}
        more |= {"BENCH_ASIDE_CORE": str(cores()[0]), "BENCH_ASIDE_LOG": str(log)}
        more["PYTHONPATH"] = os.pathsep.join([str(HERE / "aside"), more.get("PYTHONPATH", "")])
        aside = AsideWatch(log)
        try:
            _, _, watch = run_watched(command, load, **more)
        finally:
            aside.stop()
        run = only_run(Path(folder))
        events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
        start = min(e["t_ns"] for e in events if e["kind"] == "turn_start")
        end = max(e["t_ns"] for e in events if e["kind"] == "turn_end")
        rows = measured_rows(run)
        if look is not None:
            look(run)
        cpu_s, cpu_to_exit_s = watch.cpu_s(start, end), watch.cpu_since_s(start)
        return Result(cpu_s, watch.peak_rss_mb, cpu_to_exit_s, rows, aside.seen)


def measured_rows(run: Path) -> list[dict[str, Any]]:
    """The measured requests of a run directory, as accuracy.py compares them with the truth."""
    from loadgen.store.journal import read_records

    found = read_records(run / "requests.jsonl")
    return [
        {
            "id": r.response_id,
            "sent_ns": r.sent_ns,
            "ttft_ms": r.ttft_ms,
            "event_us": r.event_us,
            "coalesced": r.coalesced,
            "inexact": r.ttft_error_ms > 0,
            "read_lag_ms": r.read_lag_ms,
        }
        for r in getattr(found, "records", found)
        if r.phase == "measure"
    ]


def only_run(folder: Path) -> Path:
    runs = [p.parent for p in folder.rglob("requests.jsonl") if not p.parent.is_symlink()]
    if not runs:
        raise BenchError("our own run left no run directory")
    return runs[0]


def _reported(out: str, rows: Path, rss: float) -> Result:
    lines = [line for line in out.splitlines() if line.startswith('{"cpu_s"')]
    if not lines or not rows.exists():
        raise BenchError(f"the client reported nothing; it said: {out.strip()[-300:]}")
    return Result(json.loads(lines[-1])["cpu_s"], rss, rows=[json.loads(line) for line in rows.open()])


def _run(command: list[str], load: Load, **env: str) -> tuple[str, float]:
    out, rss, _ = run_watched(command, load, **env)
    return out, rss


def run_watched(command: list[str], load: Load, **env: str) -> tuple[str, float, CpuWatch]:
    """Run on the client's core: (standard output, peak RSS in MB, CPU samples). BenchError if it fails."""
    core = cores()[1]
    paths = (env.get("PYTHONPATH"), str(ROOT), os.environ.get("PYTHONPATH"))
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    watch = CpuWatch(process.pid)
    try:
        out, err = process.communicate(timeout=120 + 6 * load.seconds)
    except subprocess.TimeoutExpired:
        raise BenchError(f"{' '.join(command[:4])} took too long") from None
    finally:
        watch.stop()
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode:
        raise BenchError(
            f"{' '.join(command[:4])} failed with {process.returncode}: {(err or out).strip()[-500:]}"
        )
    return out, watch.peak_rss_mb, watch


RUNNERS: dict[str, Callable[[Truth, Load], Result]] = {
    "floor": _floor(0),
    "floor-sweep": _floor(SWEEP_US),
    "ours": ours,
    "ours-bare": _script("bare_client.py"),
    "aiohttp-uvloop": _script("aiohttp_client.py", "--uvloop"),
    "aiohttp": _script("aiohttp_client.py"),
    "fasthttp": _fasthttp,
}
