"""Do several processes send as much more as there are? One, two and four against the same kind of server.

Every process has as many streams as the one alone, so that k processes read k times the events. truthd has a
core to itself, and all of the generator shares the other: what is compared is the CPU that the workers spend
on an event. k processes on k cores then sustain k times (cost alone / cost of theirs) the events/s of one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accuracy import compare, percentile
from cpuwatch import CpuWatch
from machine import facts
from pairs import Change, column, order, ratio
from runners import ROOT, Load, measured_rows, only_run
from truth import HERE, BenchError, Timing, Truth, cores

WANTED = 1.8  # times the events/s of one, by two


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    load = Load(args.streams, args.rounds, args.tokens, Timing(jitter_pct=args.jitter))
    if args.quick:
        args.pairs, load, args.processes = 1, Load(16, 1, 64, Timing()), "1,2"
    processes = [int(part) for part in args.processes.split(",")]
    try:
        outcome = bench(load, processes, args.pairs)
    except BenchError as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    print(table(outcome))
    args.json.parent.mkdir(exist_ok=True)
    args.json.write_text(json.dumps(outcome, indent=1, default=vars) + "\n")
    return 0


def bench(load: Load, processes: Sequence[int], pairs: int) -> dict[str, Any]:
    """{"load", "machine", "runs": {"1": [figures], ...}, "scaling": {"2": Change, ...}}"""
    names = [str(n) for n in processes]
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for block in range(pairs):
        for name in order(names, block):
            print(f"  {block + 1}/{pairs}: {name} ...", end=" ", flush=True, file=sys.stderr)
            runs[name].append(figures := measure(int(name), load))
            print(f"{figures['us_per_event']:.2f} us/event", flush=True, file=sys.stderr)
    alone = column(runs[names[0]], "us_per_event")
    scaling = {
        name: ratio([int(name) * x for x in alone], column(runs[name], "us_per_event")) for name in names[1:]
    }
    shown = {"streams_a_process": load.streams, "rounds": load.rounds, "tokens": load.tokens}
    return {"load": {**shown, "pairs": pairs}, "machine": facts(), "runs": runs, "scaling": scaling}


def measure(processes: int, load: Load) -> dict[str, Any]:
    """Figures of one run of so many processes: cost, rate, accuracy."""
    whole = Load(load.streams * processes, load.rounds, load.tokens, load.timing)
    with Truth(load.timing) as truth, tempfile.TemporaryDirectory() as folder:
        flags = [
            *("--engine", f"truth=openai:{truth.url}", "-u", str(whole.streams), "--blocks", "1"),
            *("--turn-requests", str(whole.streams * whole.rounds), "--warmup-requests", "1"),
            *("--output-tokens", str(whole.tokens), "--runs-dir", folder, "--gpu", "off"),
        ]
        if processes > 1:
            flags += ["--processes", str(processes)]
        watches = _run(flags, processes, whole)
        run = only_run(Path(folder))
        events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
        start = min(e["t_ns"] for e in events if e["kind"] == "turn_start")
        end = max(e["t_ns"] for e in events if e["kind"] == "turn_end")
        rows = measured_rows(run)
    accuracy = compare(rows, truth.streams)
    if accuracy["responses"] != whole.streams * whole.rounds:
        raise BenchError(
            f"{processes} processes: {accuracy['responses']} of {whole.streams * whole.rounds} responses "
            "are complete"
        )
    master, *workers = watches
    senders = workers or [master]
    return {
        "us_per_event": sum(w.cpu_s(start, end) for w in senders) / whole.events * 1e6,
        "master_us_per_event": master.cpu_s(start, end) / whole.events * 1e6 if workers else None,
        "events_per_s": whole.events / ((end - start) / 1e9),
        "rss_mb": max(w.peak_rss_mb for w in senders),
        "ttft_ms": {p: percentile([r["ttft_ms"] for r in rows], p) for p in (50, 95, 99)},
        **{key: accuracy[key] for key in ("ttft_p50_ms", "ttft_p99_ms", "gap_p99_ms", "coalesced")},
    }


def _run(flags: Sequence[str], processes: int, load: Load) -> list[CpuWatch]:
    """Watches of the master (or the only process) and of each worker, when all have ended."""
    file = ROOT / "locustfiles" / "concurrency.py"
    env = {**os.environ, "INFLUXDB_URL": "", "PYTHONPATH": str(ROOT)}
    core = cores()[1]
    with tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "locust", "-f", str(file), "--headless", *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            env=env,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        watches = [CpuWatch(process.pid)]
        try:
            if processes > 1:
                watches += [CpuWatch(pid) for pid in _workers(process, processes)]
            process.wait(timeout=120 + 6 * load.seconds)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{processes} processes took too long") from None
        finally:
            for watch in watches:
                watch.stop()
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode:
            err.seek(0)
            raise BenchError(f"{processes} processes failed: {err.read().strip()[-500:]}")
    return watches


def _workers(process: subprocess.Popen[bytes], count: int) -> list[int]:
    """The worker processes, as soon as all are there."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    limit = time.monotonic() + 30
    while time.monotonic() < limit and process.poll() is None:
        pids = [int(pid) for pid in children.read_text().split()]
        if len(pids) >= count:
            return pids[:count]  # forked first, before anything else is started
        time.sleep(0.01)
    raise BenchError(f"{count} worker processes did not start")


# (two lines of head, width, digits, the figure)
COLUMNS: tuple[tuple[tuple[str, str], int, int, Callable[[dict[str, Any]], float | None]], ...] = (
    (("", "processes"), 9, 0, lambda run: None),
    (("events", "/s"), 9, 0, lambda run: run["events_per_s"]),
    (("CPU, us", "/event"), 9, 2, lambda run: run["us_per_event"]),
    (("master's", "/event"), 10, 2, lambda run: run["master_us_per_event"]),
    (("TTFT, ms", "p50"), 10, 1, lambda run: run["ttft_ms"][50]),
    (("", "p99"), 8, 1, lambda run: run["ttft_ms"][99]),
    (("error, ms", "p99"), 11, 3, lambda run: run["ttft_p99_ms"]),
    (("merged", "events"), 8, 0, lambda run: run["coalesced"]),
)


def table(outcome: dict[str, Any]) -> str:
    """A line for each number of processes, medians, and whether two are as good as they should be."""
    load, runs = outcome["load"], outcome["runs"]
    lines = [
        f"{load['streams_a_process']} streams a process, {load['rounds']} rounds of {load['tokens']} tokens, "
        f"{load['pairs']} pairs",
        "; ".join(f"{k} {v}" for k, v in outcome["machine"].items()),
        "",
        *("".join(f"{head[row]:>{width}}" for head, width, _, _ in COLUMNS) for row in (0, 1)),
    ]
    for name, found in runs.items():
        cells = [f"{name:>{COLUMNS[0][1]}}"]
        for _, width, digits, of in COLUMNS[1:]:
            values = [value for run in found if (value := of(run)) is not None]
            cells.append(f"{percentile(values, 50):{width},.{digits}f}" if values else f"{'-':>{width}}")
        lines.append("".join(cells))
    lines.append("")
    for name, change in outcome["scaling"].items():
        lines.append(f"{name} processes on {name} cores: x {_interval(change)} the events/s of one")
    if (two := outcome["scaling"].get("2")) is not None:
        lines.append(f"at least {WANTED:g} by two: {_verdict(two)}")
    return "\n".join(lines)


def _interval(change: Change) -> str:
    if change.low is None or change.high is None:
        return f"{change.mean:.2f} (too few pairs for an interval)"
    return f"{change.mean:.2f} ({change.low:.2f} to {change.high:.2f})"


def _verdict(change: Change) -> str:
    if change.low is None or change.high is None:
        return "not decided"
    return "holds" if change.low >= WANTED else "does not hold" if change.high < WANTED else "not decided"


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--processes", default="1,2,4", help="how many, the one alone first")
    p.add_argument("--streams", type=int, default=200, help="of each process")
    p.add_argument("--rounds", type=int, default=2, help="responses a stream")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--jitter", type=float, default=0.0, help="percent")
    p.add_argument("--pairs", type=int, default=6)
    p.add_argument("--quick", action="store_true", help="one small pair: does it work?")
    p.add_argument("--json", type=Path, default=HERE / "out" / "processes.json", help="all figures")
    return p


if __name__ == "__main__":
    sys.exit(main())
