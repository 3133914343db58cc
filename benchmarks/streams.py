"""Cost and accuracy of receiving streams: our load generator beside other clients and beside the floor.

Server on one core, client on another, one client after the other, each against a server of its own; the list
is run forwards and backwards (A B C, C B A, ...), because a machine's speed drifts. Prints a line a client.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machine import facts
from runners import RUNNERS, Load, measure
from truth import BenchError, Timing

BASE = "aiohttp-uvloop"


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    load = Load(
        args.concurrency,
        args.rounds,
        args.tokens,
        Timing(args.ttft_ms, args.itl_ms, args.jitter_pct, args.role_ms if args.role_chunk else None),
    )
    try:
        outcome = bench(load, args.clients.split(","), args.passes)
    except BenchError as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    print(table(outcome))
    if args.json:
        args.json.write_text(json.dumps(outcome, indent=1) + "\n")
    return 0


def bench(load: Load, clients: Sequence[str], passes: int) -> dict[str, Any]:
    """{"load", "machine", "clients": {name: figures}}: medians over passes; ratios are taken in each pass."""
    runs: list[dict[str, dict[str, Any]]] = []
    for i in range(passes):
        one: dict[str, dict[str, Any]] = {}
        for client in clients if i % 2 == 0 else list(reversed(clients)):
            print(f"  pass {i + 1}/{passes}: {client} ...", end=" ", flush=True, file=sys.stderr)
            one[client] = measure(client, load)
            print(f"{one[client]['us_per_event']:.1f} us/event", flush=True, file=sys.stderr)
        runs.append(one)
    result = {client: _median([run[client] for run in runs]) for client in clients}
    for client in clients:
        for other in ("floor", "floor-sweep", BASE):
            if other in clients:
                ratios = [run[client]["us_per_event"] / run[other]["us_per_event"] for run in runs]
                result[client][f"to_{other}"] = statistics.median(ratios)
                result[client][f"to_{other}_range"] = [min(ratios), max(ratios)]
    shown = {
        "streams": load.streams,
        "rounds": load.rounds,
        "tokens": load.tokens,
        "passes": passes,
        **vars(load.timing),
    }
    return {"load": shown, "machine": facts(), "clients": result}


# (two lines of head, width, digits, the figure)
COLUMNS: tuple[tuple[str, str, int, int, str], ...] = (
    ("CPU, us", "/event", 8, 2, "us_per_event"),
    ("times", "floor", 6, 2, "to_floor"),
    ("times", "sweep", 6, 2, "to_floor-sweep"),
    ("of aio", "uvloop", 7, 2, f"to_{BASE}"),
    ("TTFT error", "p50, ms", 11, 3, "ttft_p50_ms"),
    ("", "p99, ms", 8, 3, "ttft_p99_ms"),
    ("gap err", "p99, ms", 8, 3, "gap_p99_ms"),
    ("merged", "events", 7, 0, "coalesced"),
    ("marked", "TTFTs", 7, 0, "marked"),
    ("RSS", "MB", 5, 0, "rss_mb"),
)


def table(outcome: dict[str, Any]) -> str:
    """A line a client, in 90 columns."""
    load = outcome["load"]
    role = "" if load["role_ms"] is None else f", role chunk {load['role_ms']:g} ms ahead"
    lines = [
        f"{load['streams']} streams x {load['rounds']} rounds of {load['tokens']} tokens, the first after "
        f"{load['ttft_ms']:g} ms, then one every {load['itl_ms']:g} ms{role}; {load['passes']} passes",
        "; ".join(f"{k} {v}" for k, v in outcome["machine"].items()),
        "",
        f"{'':15}" + "".join(f"{above:>{width}}" for above, _, width, _, _ in COLUMNS),
        f"{'client':15}" + "".join(f"{below:>{width}}" for _, below, width, _, _ in COLUMNS),
    ]
    for name, figures in outcome["clients"].items():
        cells = (_cell(figures.get(key), width, digits) for _, _, width, digits, key in COLUMNS)
        lines.append(f"{name:15}" + "".join(cells))
    ours = outcome["clients"].get("ours", {})
    if "us_per_event_to_exit" in ours:
        more = ours["us_per_event_to_exit"]
        lines.append(f"ours, with all that follows its last response (summary, files): {more:.2f} us/event")
    lines += [
        f"{name}: {figures['unmarked']:.0f} first tokens were seen more than 1 ms late and are not marked"
        for name, figures in outcome["clients"].items()
        if name.startswith("ours") and figures.get("unmarked")
    ]
    return "\n".join(lines)


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{digits}f}"


def _median(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key in runs[0]:
        values = [run[key] for run in runs if run.get(key) is not None]
        if key != "client" and values:
            out[key] = statistics.median(values)
            out[f"{key}_passes"] = values
    return out


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--concurrency", type=int, default=256, help="streams at once")
    p.add_argument("--rounds", type=int, default=3, help="responses a stream, one after the other")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--itl-ms", type=float, default=20.0)
    p.add_argument("--ttft-ms", type=float, default=200.0)
    p.add_argument("--jitter-pct", type=float, default=0.0)
    p.add_argument("--role-chunk", action="store_true", help="a role chunk ahead of the first token")
    p.add_argument("--role-ms", type=float, default=1.0, help="how far ahead")
    p.add_argument("--passes", type=int, default=2)
    p.add_argument("--clients", default=",".join(RUNNERS), help="comma-separated")
    p.add_argument("--json", type=Path, help="write all figures there")
    return p


if __name__ == "__main__":
    sys.exit(main())
