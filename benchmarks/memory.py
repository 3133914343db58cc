"""Peak memory of a whole run with 512 streams of 256 tokens in flight; Locust and journal included."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machine import facts
from runners import Load, measure
from truth import BenchError, Timing

LIMIT_MB = 300


def main(argv: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--concurrency", type=int, default=512, help="streams at once")
    p.add_argument("--rounds", type=int, default=3, help="responses a stream")
    p.add_argument("--tokens", type=int, default=256)
    p.add_argument("--json", type=Path, help="write the figures there")
    args = p.parse_args(argv)
    try:
        outcome = memory(args.concurrency, args.rounds, args.tokens)
    except BenchError as e:
        print(e, file=sys.stderr)
        return 1
    print(sentence(outcome))
    if args.json:
        args.json.write_text(json.dumps(outcome, indent=1) + "\n")
    return int(outcome["rss_mb"] > LIMIT_MB)


def memory(streams: int, rounds: int, tokens: int) -> dict[str, Any]:
    """Peak resident set in MB (VmHWM), start-up and the summary at the end included."""
    figures = measure("ours", Load(streams, rounds, tokens, Timing()))
    sizes = {"streams": streams, "rounds": rounds, "tokens": tokens}
    return {**sizes, "rss_mb": figures["rss_mb"], "machine": facts()}


def sentence(outcome: dict[str, Any]) -> str:
    return (
        f"{outcome['streams']} streams of {outcome['tokens']} tokens in flight, {outcome['rounds']} rounds: "
        f"peak RSS {outcome['rss_mb']:.0f} MB (limit {LIMIT_MB})"
    )


if __name__ == "__main__":
    sys.exit(main())
