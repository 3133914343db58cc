"""Time and memory of a comparison of one million requests with 256 events each, from Parquet files.

    python benchmarks/compare_1m.py [--requests 1000000] [--keep DIR]

Writes a run of two engines and 12 blocks, makes its Parquet files (timed apart), then compares its engines in
a process of its own, writes its HTML report in another, and prints a line for each: seconds, seconds of CPU,
and the most memory that the process held. Needs 6 GB of disk. `--keep DIR` leaves the run in DIR; a run that
lies there already is used again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from summary_10m import generate

from loadgen.store import RunDir

TURNS = 24
COMPARE = """
import sys
from pathlib import Path
from loadgen.compare.runs import compare_run
from loadgen.store import RunDir
found = compare_run(RunDir.open(Path(sys.argv[1])))
gaps = [row.samples + row.baseline_samples for row in found.rows if row.figure == "chunk_gap_ms"]
print(len(found.rows), max(row.blocks for row in found.rows), gaps[0])
"""
REPORT = """
import sys
from pathlib import Path
from loadgen.report.html import write_html
from loadgen.store import RunDir
run = RunDir.open(Path(sys.argv[1]))
print(write_html([run], run.path / "report.html"))
"""
EXPORT = "import sys; from loadgen.store.parquet import main; main()"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument(
        "--keep", type=Path, help="write the run here and leave it, or use the one that is here"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        parent = args.keep or Path(temporary)
        kept = sorted(path.parent for path in parent.glob("*/requests.jsonl")) if args.keep else []
        run = RunDir.open(kept[-1]) if kept else RunDir.create(parent, "bench")
        if not kept:
            generate(run, args.requests, turns=TURNS)
        size = run.journal_path.stat().st_size / 1e6
        print(f"{args.requests:,} requests of 256 events, journal {size:,.0f} MB", flush=True)
        if not run.chunk_events_parquet.exists():
            _timed("making the Parquet files", EXPORT, run)
        rows, blocks, gaps = map(int, _timed("compare", COMPARE, run).split())
        size = int(_timed("report", REPORT, run)) / 1e6
    print(f"{rows} rows, {blocks} blocks, {gaps:,} gaps; report.html of {size:.1f} MB")
    return 0 if gaps == args.requests * 255 else 1


def _timed(what: str, code: str, run: RunDir) -> str:
    """Run the code in a process of its own; what it printed."""
    command = [sys.executable, "-c", code, str(run.path)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{what} ended with {process.returncode}")
    memory = used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    cpu = used.ru_utime + used.ru_stime
    print(f"{what}: {seconds:.1f} s, {cpu:.1f} s of CPU, {memory:,.0f} MiB", flush=True)
    return printed


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
