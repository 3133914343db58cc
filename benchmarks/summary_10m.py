"""Time and memory of `loadgen summary` on a run of ten million recorded events.

    python benchmarks/summary_10m.py [--events 10000000] [--keep DIR]

Writes a journal of requests with 256 events each (two engines, several turns, tokens per event known), then
summarises it in a process of its own and prints one line: seconds, seconds of CPU, and the most memory that
the process held.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loadgen.record import RequestRecord
from loadgen.store import EventsWriter, JournalWriter, RunDir

EVENTS_A_REQUEST = 256
TURNS = 8
IN_FLIGHT = 256
SUMMARISE = """
import sys
from pathlib import Path
from loadgen.report import compute
from loadgen.store import RunDir
result = compute(RunDir.open(Path(sys.argv[1])))
engines = result["bench"].values()
print(sum(e["counts"]["events"] for e in engines), sum(e["chunk_gap_ms"]["n"] for e in engines))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="write the run here and leave it")
    args = parser.parse_args()
    requests = -(-args.events // EVENTS_A_REQUEST)
    with tempfile.TemporaryDirectory() as temporary:
        run = RunDir.create(args.keep or Path(temporary), "bench")
        generate(run, requests)
        size = run.journal_path.stat().st_size
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", SUMMARISE, str(run.path)], check=True, capture_output=True, text=True
        )
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    events, gaps = map(int, done.stdout.split())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = after.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(
        f"{events:,} events, {gaps:,} gaps, {requests:,} requests, journal {size / 1e6:,.0f} MB: "
        f"{seconds:.1f} s, {cpu:.1f} s of CPU, {memory:,.0f} MiB"
    )
    return 0 if events == requests * EVENTS_A_REQUEST else 1


def generate(run: RunDir, requests: int, turns: int = TURNS) -> None:
    """A journal as a run would leave it: turns of two engines, IN_FLIGHT requests at a time."""
    rng = random.Random(1)
    journal, events = JournalWriter(run.journal_path), EventsWriter(run.events_path)
    run.manifest_path.write_text(json.dumps({"run": run.name, "scenario": "bench", "state": "complete"}))
    streams = [[80_000 + 20_000 * k + rng.randrange(500) for k in range(EVENTS_A_REQUEST)] for _ in range(64)]
    now = time.time_ns()
    for turn in range(turns):
        mine = range(turn * requests // turns, (turn + 1) * requests // turns)
        engine = ("vllm", "llamacpp")[(turn + 1) // 2 % 2]
        at = {"engine": engine, "turn": turn, "block": turn // 2}
        events.append({"kind": "turn_start", "t_ns": now, "mono_ns": now, **at})
        wave_ns = 6 * 10**9
        for k, n in enumerate(mine):
            event_us = rng.choice(streams)
            ttft, e2e = event_us[0] / 1e3, event_us[-1] / 1e3
            journal.append(
                RequestRecord(
                    run=run.name,
                    scenario="bench",
                    model="m",
                    user=k % IN_FLIGHT,
                    sequence=n,
                    sent_ns=now + k // IN_FLIGHT * wave_ns,
                    first_event_ms=ttft,
                    ttft_ms=ttft,
                    e2e_ms=e2e,
                    complete_ms=e2e + 0.2,
                    tpot_ms=(e2e - ttft) / (EVENTS_A_REQUEST - 1),
                    prompt_tokens=50,
                    output_tokens=EVENTS_A_REQUEST,
                    asked_output_tokens=EVENTS_A_REQUEST,
                    token_source="usage",
                    events=EVENTS_A_REQUEST + 2,
                    event_us=event_us,
                    event_tokens=[1] * EVENTS_A_REQUEST,
                    **at,
                )
            )
        now += (len(mine) // IN_FLIGHT + 1) * wave_ns
        events.append({"kind": "turn_end", "complete": True, "t_ns": now, "mono_ns": now, **at})
        now += 5 * 10**9
    journal.close()
    events.close()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
