"""What delivery to InfluxDB and GPU sampling cost the load generator.

The generator has one core to itself; the server (truthd), the database, the shipper and the sampler share
the other. Three conditions take turns, A B C C B A and so on: neither, delivery to a real InfluxDB, and a
sampler of eight GPUs whose NVML calls take 50 ms each (a recording of a real one, replayed).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from accuracy import compare, percentile
from machine import facts
from pairs import Change, column, difference, order, ratio
from runners import ROOT, Load, Result, ours
from truth import HERE, BenchError, Timing, Truth, cores

sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.support.influxdb import InfluxError, InfluxServer, NotInstalled  # noqa: E402

CPU_LIMIT, LAG_LIMIT_MS = 1.05, 1.0
GPUS, CALL_MS, BEAT_S = 8, 50, 1.0
NEITHER, DELIVERY, SAMPLER = "neither", "delivery", "sampler"
QUIET = ("--gpu", "off")


@dataclass
class Condition:
    """What is switched on: flags and environment of a run, and `check`, which adds to the figures what proves
    that it was at work (BenchError if it was not)."""

    flags: tuple[str, ...]
    env: dict[str, str]
    check: Callable[[Path, dict[str, Any]], None]


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    load = Load(args.concurrency, args.rounds, args.tokens, Timing(jitter_pct=args.jitter))
    if args.quick:
        args.pairs, load = 2, Load(32, 1, 64, Timing())
    chosen = (NEITHER, *(c for c in (DELIVERY, SAMPLER) if args.only in (None, c)))
    try:
        os.sched_setaffinity(0, {cores()[0]})  # all that is started here inherits it, but for the generator
        outcome = bench(load, chosen, args.pairs)
    except (BenchError, InfluxError, NotInstalled) as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    print(table(outcome))
    args.json.parent.mkdir(exist_ok=True)
    args.json.write_text(json.dumps(outcome, indent=1, default=vars) + "\n")
    return 0


def bench(load: Load, conditions: Sequence[str], pairs: int) -> dict[str, Any]:
    """{"load", "machine", "runs": {condition: [figures]}, "changes": {condition: {figure: Change}}}"""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in conditions}
    with ExitStack() as stack:
        settings = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "loadgen.toml"
        settings.write_text('[telemetry]\nengine_metrics = "off"\n')
        made = {
            name: _condition(name, stack.enter_context(_database()) if name == DELIVERY else None)
            for name in conditions
        }
        for block in range(pairs):
            for name in order(conditions, block):
                print(f"  {block + 1}/{pairs}: {name} ...", end=" ", flush=True, file=sys.stderr)
                runs[name].append(run := measure(made[name], load, settings))
                print(f"{run['us_per_event']:.2f} us/event", flush=True, file=sys.stderr)
    base = runs[NEITHER]
    changes = {
        name: {
            "cpu": ratio(column(own, "us_per_event"), column(base, "us_per_event")),
            "read_lag_p99_ms": difference(column(own, "read_lag_p99_ms"), column(base, "read_lag_p99_ms")),
        }
        for name, own in runs.items()
        if name != NEITHER
    }
    shown = {"streams": load.streams, "rounds": load.rounds, "tokens": load.tokens, **vars(load.timing)}
    return {"load": {**shown, "pairs": pairs}, "machine": facts(), "runs": runs, "changes": changes}


def measure(condition: Condition, load: Load, settings: Path) -> dict[str, Any]:
    """Figures of one run."""
    figures: dict[str, Any] = {}
    flags = (*condition.flags, "--loadgen-config", str(settings))
    with Truth(load.timing) as truth:
        result: Result = ours(
            truth, load, *flags, env=condition.env, look=lambda run: condition.check(run, figures)
        )
    lags = [row["read_lag_ms"] for row in result.rows if row["read_lag_ms"] is not None]
    accuracy = compare(result.rows, truth.streams)
    if len(lags) != load.streams * load.rounds or accuracy["responses"] != len(lags):
        raise BenchError(f"only {len(lags)} of {load.streams * load.rounds} responses are complete")
    figures["us_per_event"] = result.cpu_s / load.events * 1e6
    figures["read_lag_p99_ms"] = percentile(lags, 99)
    figures |= {key: accuracy[key] for key in ("ttft_p50_ms", "ttft_p99_ms", "gap_p99_ms", "coalesced")}
    figures["aside"] = result.aside
    return figures


def _condition(name: str, database: InfluxServer | None) -> Condition:
    if database is not None:
        env = {
            "INFLUXDB_URL": database.url,
            "INFLUXDB_TOKEN": database.token,
            "INFLUXDB_ORG": database.org,
            "INFLUXDB_BUCKET": "bench",
        }
        return Condition(QUIET, env, lambda run, figures: _delivered(run, database, figures))
    if name == SAMPLER:
        env = {
            "PYTHONPATH": str(ROOT / "tests" / "support" / "fakenvml"),
            "FAKENVML_GPUS": str(GPUS),
            "FAKENVML_CALL_MS": str(CALL_MS),
        }
        return Condition(("--gpu", "on"), env, _sampled)
    return Condition(QUIET, {}, lambda run, figures: None)


@contextmanager
def _database() -> Iterator[InfluxServer]:
    with tempfile.TemporaryDirectory() as folder, InfluxServer(Path(folder)) as server:
        server.create("bench")
        yield server


def _delivered(run: Path, database: InfluxServer, figures: dict[str, Any]) -> None:
    """Every request of the run is in the database."""
    made = sum(1 for _ in (run / "requests.jsonl").open("rb"))
    answer = database.query(f"SELECT count(e2e_ms) FROM llm_request WHERE run = '{run.name}'", "bench")
    figures["delivered"] = int(answer[0]["values"][0][1]) if answer else 0
    if figures["delivered"] != made:
        raise BenchError(f"{figures['delivered']} of {made} requests are in the database")


def _sampled(run: Path, figures: dict[str, Any]) -> None:
    """Samples of all GPUs came; how well the beat was held."""
    times: dict[int, list[int]] = {}
    for line in (run / "gpu.jsonl").open():
        row = json.loads(line)
        if row["kind"] == "sample":
            times.setdefault(row["gpu"], []).append(row["t_ns"])
    if len(times) != GPUS or min(map(len, times.values())) < 3:
        raise BenchError(f"samples of {len(times)} of {GPUS} GPUs came: {[len(t) for t in times.values()]}")
    gaps = [(b - a) / 1e9 for t in times.values() for a, b in pairwise(t)]
    figures["beat_p50_s"] = statistics.median(gaps)
    figures["beat_max_s"] = max(gaps)


def table(outcome: dict[str, Any]) -> str:
    """A line a condition, then what each adds, in 100 columns."""
    load, runs = outcome["load"], outcome["runs"]
    lines = [
        f"{load['streams']} streams x {load['rounds']} rounds of {load['tokens']} tokens, the first after "
        f"{load['ttft_ms']:g} ms, then one every {load['itl_ms']:g} ms; {load['pairs']} runs each, medians",
        "; ".join(f"{k} {v}" for k, v in outcome["machine"].items()),
        "",
        f"{'':10}{'CPU, us':>10}{'read lag':>12}{'TTFT error':>12}{'gap error':>12}{'merged':>8}",
        f"{'':10}{'/event':>10}{'p99, ms':>12}{'p99, ms':>12}{'p99, ms':>12}{'events':>8}",
    ]
    for name, own in runs.items():
        cells = [
            f"{statistics.median(column(own, key)):{width}.{digits}f}"
            for key, width, digits in (
                ("us_per_event", 10, 2),
                ("read_lag_p99_ms", 12, 3),
                ("ttft_p99_ms", 12, 3),
                ("gap_p99_ms", 12, 3),
                ("coalesced", 8, 0),
            )
        ]
        lines.append(f"{name:10}" + "".join(cells))
    lines.append("")
    for name, changes in outcome["changes"].items():
        cpu, lag = changes["cpu"], changes["read_lag_p99_ms"]
        lines += [
            f"{name}: CPU x {_interval(cpu, 3)}; at most x {CPU_LIMIT:g} {cpu.against(CPU_LIMIT)}",
            f"{name}: read lag p99 {_interval(lag, 3, '+')} ms; at most +{LAG_LIMIT_MS:g} ms "
            f"{lag.against(LAG_LIMIT_MS)}",
        ]
    if own := runs.get(DELIVERY):
        lines.append(f"shipper: {_aside(own, 'shipper')}, {own[-1]['delivered']:,} requests a run delivered")
    if own := runs.get(SAMPLER):
        lines.append(
            f"sampler: {_aside(own, 'sampler')}, {GPUS} GPUs, {CALL_MS} ms a call: a sample every "
            f"{statistics.median(column(own, 'beat_p50_s')):.3f} s, "
            f"{max(column(own, 'beat_max_s')):.3f} s at worst (asked: {BEAT_S:g} s)"
        )
    return "\n".join(lines)


def _interval(change: Change, digits: int, sign: str = "") -> str:
    text = f"{change.mean:{sign}.{digits}f}"
    if change.low is None or change.high is None:
        return text
    return f"{text} ({change.low:{sign}.{digits}f} to {change.high:{sign}.{digits}f})"


def _aside(runs: Sequence[dict[str, Any]], name: str) -> str:
    rows = [run["aside"][name] for run in runs if name in run["aside"]]
    if not rows:
        return "cost unknown"
    cpu, rss = (statistics.median(row[key] for row in rows) for key in ("cpu_s", "rss_mb"))
    return f"{cpu:.1f} s of CPU a run, {rss:.0f} MB"


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--concurrency", type=int, default=256, help="streams at once")
    p.add_argument("--rounds", type=int, default=3, help="responses a stream, one after the other")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument(
        "--jitter",
        type=float,
        default=25,
        help="percent by which each delay varies: without, all march in step",
    )
    p.add_argument("--pairs", type=int, default=10, help="runs of each condition")
    p.add_argument("--only", choices=(DELIVERY, SAMPLER), help="this one alone, beside neither")
    p.add_argument("--quick", action="store_true", help="a minute, to see that it works; decides nothing")
    p.add_argument("--json", type=Path, default=HERE / "out" / "sidecars.json", help="all figures")
    return p


if __name__ == "__main__":
    sys.exit(main())
