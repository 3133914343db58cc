"""How exactly an open loop's requests are sent while streams are being read.

`truthd` streams on one core, the generator has the other, and requests come as a Poisson process at a rate
that keeps so many streams in flight. Lateness is taken twice: as the generator reports it (`send_lag_ms`) and
as the server's kernel saw it (the request's last byte minus the time that was scheduled, the way through the
loopback included).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuracy import compare, percentile
from machine import facts
from runners import ROOT, Load, measured_rows, only_run, run_watched
from truth import BenchError, Timing, Truth, cores

LIMIT_MS, LIMIT_CPU = 1.0, 70.0
IN_FLIGHT = (16, 64, 256, 512)
TOKENS, SECONDS = 100, 20.0


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if args.quick:
        args.in_flight, args.seconds = "64", 4.0
    try:
        os.sched_setaffinity(0, {cores()[0]})  # all but the generator
        rows = [one(int(n), args.tokens, args.seconds) for n in args.in_flight.split(",")]
    except BenchError as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    outcome = {"machine": facts(), "tokens": args.tokens, "seconds": args.seconds, "loads": rows}
    print(table(outcome))
    if args.json:
        args.json.write_text(json.dumps(outcome, indent=1) + "\n")
    return 0


def one(in_flight: int, tokens: int, seconds: float) -> dict[str, Any]:
    """The figures of one load."""
    timing = Timing()
    service_s = (timing.ttft_ms + tokens * timing.itl_ms) / 1e3
    rate = in_flight / service_s
    print(f"  {in_flight} in flight: {rate:.1f} requests/s ...", file=sys.stderr, flush=True)
    with Truth(timing) as truth, tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "locust", "-f", str(ROOT / "locustfiles" / "open_loop.py"), "--headless",
            "--engine", f"truth=openai:{truth.url}", "--rate", f"{rate:.6f}", "--turn-seconds", str(seconds),
            "--blocks", "1", "--output-tokens", str(tokens), "--gpu", "off", "--runs-dir", folder,
            "--max-in-flight", str(8 * in_flight),
        ]  # fmt: skip
        load = Load(in_flight, max(1, round(seconds / service_s)), tokens, timing)
        _, _, watch = run_watched(command, load, INFLUXDB_URL="")
        run = only_run(Path(folder))
        events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
        records = [json.loads(line) for line in (run / "requests.jsonl").read_text().splitlines()]
        rows = measured_rows(run)
    begun = next(e["t_ns"] for e in events if e["kind"] == "turn_start")
    ended = next(e for e in events if e["kind"] == "turn_end")
    sent = [r for r in records if r["phase"] == "measure"]
    lags = [r["send_lag_ms"] for r in sent]
    return {
        "in_flight": in_flight,
        "requests": len(sent),
        "rate": rate,
        "peak_in_flight": ended["peak_in_flight"],
        "dropped": ended["dropped"],
        "late": ended["late"],
        "cpu_percent": 100 * watch.cpu_s(begun, begun + round(seconds * 1e9)) / seconds,
        "reused": sum(r["connection_reused"] for r in sent) / len(sent),
        **{f"lag_p{p}_ms": percentile(lags, p) for p in (50, 99)},
        "lag_max_ms": max(lags),
        **_as_the_server_saw_it(sent, rows, truth),
    }


def _as_the_server_saw_it(
    sent: list[dict[str, Any]], rows: list[dict[str, Any]], truth: Truth
) -> dict[str, Any]:
    streams: Any = truth.streams
    arrived = []
    for r in sent:
        stream = streams.get(int(str(r.get("response_id", "0")).rpartition("-")[2] or 0))
        if stream is not None:
            arrived.append((stream["recv"] - r["scheduled_ns"]) / 1e6)
    if not arrived:
        raise BenchError("no response could be matched with truthd's log")
    read = compare(rows, streams)
    return {
        **{f"arrived_p{p}_ms": percentile(arrived, p) for p in (50, 99)},
        "ttft_p99_ms": read["ttft_p99_ms"],
        "coalesced_share": read["coalesced"] / sum(len(r["event_us"]) for r in rows),
    }


COLUMNS = (
    ("streams", "at once", 8, 0, "in_flight"),
    ("requests", "a second", 9, 1, "rate"),
    ("CPU,", "%", 6, 1, "cpu_percent"),
    ("late p50", "ms", 9, 3, "lag_p50_ms"),
    ("p99", "ms", 7, 3, "lag_p99_ms"),
    ("most", "ms", 7, 2, "lag_max_ms"),
    ("at server", "p99, ms", 10, 3, "arrived_p99_ms"),
    ("TTFT error", "p99, ms", 11, 3, "ttft_p99_ms"),
    ("dropped", "", 8, 0, "dropped"),
)


def table(outcome: dict[str, Any]) -> str:
    lines = [
        f"Poisson arrivals, {outcome['seconds']:g} s, {outcome['tokens']} tokens, one every 20 ms",
        "; ".join(f"{k} {v}" for k, v in outcome["machine"].items()),
        "",
        "".join(f"{above:>{width}}" for above, _, width, _, _ in COLUMNS),
        "".join(f"{below:>{width}}" for _, below, width, _, _ in COLUMNS),
    ]
    lines += ["".join(f"{row[k]:{w}.{d}f}" for _, _, w, d, k in COLUMNS) for row in outcome["loads"]]
    fit = [row for row in outcome["loads"] if row["in_flight"] >= 64 and row["cpu_percent"] < LIMIT_CPU]
    for row in fit:
        met = "met" if row["lag_p99_ms"] <= LIMIT_MS else "NOT MET"
        lines.append(
            f"{row['in_flight']} streams, {row['cpu_percent']:.0f} % CPU: p99 within {LIMIT_MS:g} ms: {met}"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--in-flight", default=",".join(map(str, IN_FLIGHT)), help="streams at once, with commas")
    p.add_argument("--seconds", type=float, default=SECONDS, help="length of the schedule")
    p.add_argument("--tokens", type=int, default=TOKENS)
    p.add_argument("--quick", action="store_true", help="64 streams, 4 seconds")
    p.add_argument("--json", type=Path, help="write all figures there")
    return p


if __name__ == "__main__":
    sys.exit(main())
