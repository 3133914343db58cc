"""Measures what an event and a request cost on this machine: two short runs, one of long answers and one of
short ones, and the records of both sent on as a worker does."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psutil

from loadgen.cli.run import locustfile
from loadgen.plan.cost import Cost, fit, line_through
from loadgen.record import RequestRecord
from loadgen.store import JournalWriter
from loadgen.store.jsonl import read_rows
from loadgen.users.messages import pack_lines, unpack_lines

WATCH_S = 0.05
LIMIT_S = 120.0
AGAIN_S = 0.2  # of CPU, for each figure of the channel


class MeasureError(Exception):
    """Why nothing could be measured, in one sentence."""


@dataclass(frozen=True)
class Sample:
    """One run: `tokens` an answer, `streams` at once, `rounds` answers of each."""

    streams: int
    tokens: int
    rounds: int


LONG, SHORT = Sample(200, 256, 1), Sample(50, 16, 16)


@dataclass
class Seen:
    """What a run left behind: rows of windows.jsonl, lines of the journal, and the most memory in MB."""

    rows: list[dict[str, Any]]
    lines: list[bytes]
    memory_mb: float


def measure(url: str, engine: str = "vllm", samples: tuple[Sample, Sample] = (LONG, SHORT)) -> Cost:
    """The cost against the server at `url`, of the kind `engine`. Raises MeasureError."""
    long, short = (run(url, engine, one) for one in samples)
    try:
        event_us, request_us = fit([*long.rows, *short.rows])
    except ValueError as e:
        raise MeasureError(str(e)) from None
    few, many = samples[1].tokens, samples[0].tokens
    small, large = channel_cost(short.lines), channel_cost(long.lines)
    send, master, size = (line_through((few, small[i]), (many, large[i])) for i in range(3))
    streams = samples[0].streams - samples[1].streams
    stream_kb = max(0.0, long.memory_mb - short.memory_mb) * 1000 / streams
    return Cost(
        event_us=event_us,
        request_us=request_us,
        send_event_us=send[0],
        send_request_us=send[1],
        master_event_us=master[0],
        master_request_us=master[1],
        journal_event_bytes=size[0],
        journal_request_bytes=size[1],
        channel_share=large[3],
        memory_mb=max(0.0, short.memory_mb - samples[1].streams * stream_kb / 1000),
        memory_stream_kb=stream_kb,
        source=f"{time.strftime('%Y-%m-%d')}, {processor()}, Python {platform.python_version()}",
    )


def run(url: str, engine: str, sample: Sample, env: Mapping[str, str] = os.environ) -> Seen:
    """One run, in a process and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="loadgen-plan-") as folder:
        command = [
            *(sys.executable, "-m", "locust", "-f", str(locustfile("concurrency").resolve()), "--headless"),
            *("--engine", f"a={engine}:{url}", "-u", str(sample.streams), "--blocks", "1"),
            *("--turn-requests", str(sample.streams * sample.rounds), "--output-tokens", str(sample.tokens)),
            *("--warmup-requests", "0", "--gpu", "off", "--runs-dir", str(Path(folder) / "runs")),
        ]
        # Nothing of the person's settings: no database, no loadgen.toml of the folder.
        clean = {k: v for k, v in env.items() if not k.startswith(("LOCUST_", "LOADGEN_", "INFLUXDB_"))}
        paths = [str(Path(__file__).resolve().parents[2]), *filter(None, [env.get("PYTHONPATH")])]
        clean["PYTHONPATH"] = os.pathsep.join(paths)
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=clean,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        memory_mb = _watch(process)
        err = process.stderr.read() if process.stderr else ""
        found = sorted(Path(folder).glob("runs/*/requests.jsonl"))
        if process.returncode or not found:
            raise MeasureError(f"a run to measure failed: {err.strip()[-500:] or process.returncode}")
        lines = [line for line in found[0].read_bytes().split(b"\n") if line]
        if len(lines) != sample.streams * sample.rounds:
            raise MeasureError(f"only {len(lines)} of {sample.streams * sample.rounds} requests are there")
        return Seen(list(read_rows(found[0].with_name("windows.jsonl"))), lines, memory_mb)


def channel_cost(lines: Sequence[bytes]) -> tuple[float, float, float, float]:
    """(us of CPU for a worker to send a record, for the master to take it in, bytes of it in the journal, the
    share of them that goes through the channel), from lines of a journal."""
    packed: list[bytes] = []
    rest = list(lines)
    while rest:
        part, count = pack_lines(rest)
        packed.append(part)
        del rest[:count]
    size = sum(map(len, lines))
    with tempfile.TemporaryDirectory(prefix="loadgen-plan-") as folder:
        journal = JournalWriter(Path(folder) / "requests.jsonl")

        def take_in() -> None:
            for part in packed:
                for line in unpack_lines(part):
                    journal.append(RequestRecord.from_dict(orjson.loads(line)))

        try:
            send_us = _cpu_us(lambda: pack_lines(lines)) / pack_lines(lines)[1]
            master_us = _cpu_us(take_in) / len(lines)
        finally:
            journal.close()
    return send_us, master_us, size / len(lines), sum(map(len, packed)) / size


def processor() -> str:
    """Its name, as far as the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        names = [
            line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")
        ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _watch(process: subprocess.Popen[str]) -> float:
    """Wait for its end; the most memory that it had, in MB. Raises MeasureError if it takes too long."""
    most, limit = 0, time.monotonic() + LIMIT_S
    try:
        seen = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                most = max(most, seen.memory_info().rss)
            except psutil.Error:
                break
            if time.monotonic() > limit:
                raise MeasureError(f"a run to measure took more than {LIMIT_S:g} s")
            time.sleep(WATCH_S)
        process.wait()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return most / 1e6


def _cpu_us(work: Callable[[], Any]) -> float:
    """CPU of one call in microseconds, from as many as take AGAIN_S."""
    work()
    calls, start = 0, time.process_time()
    while (passed := time.process_time() - start) < AGAIN_S:
        work()
        calls += 1
    return passed / max(calls, 1) * 1e6
