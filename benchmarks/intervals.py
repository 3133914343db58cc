"""Do the comparison's intervals keep what they promise? Made runs whose true ratio is known, many times over.

    python benchmarks/intervals.py [--runs 1000] [--blocks 6,8,12] [--ratios 1.05,1.2] [--turn 64] [--apart]

Engine b takes `ratio` times as long as engine a, in every figure. For each number of blocks, ratio and figure
it prints how many intervals held the ratio (95 % is promised), how many runs claimed a difference beyond the
margin of 5 % by the interval of that figure alone, and how many did after the correction for all claims of
the run. A wrong claim is one at a true ratio of 1.05. With --apart nothing pairs the blocks.

Requests of a turn come in waves of 16 that share their luck, as in real runs. The sizes of the parts are
what `benchmarks/noise.py` finds in a run of vLLM and llama.cpp on an H200, six blocks, 16 requests in flight:
each is the root of the mean of both engines' variances. The first wave of a turn has a TTFT of its own
(`first`: vLLM answers it sooner than what comes later), which is the same in every turn.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.compare import BETTER, MARGIN, Comparison, Side, compare_pairs
from loadgen.compare.engines import MEAN, VALUE
from loadgen.metrics.columns import FLAGS, NUMBERS, WHOLE, WORDS, Columns
from loadgen.metrics.turns import Turn
from loadgen.report.load import EngineData

WAVE = 16
TOKENS = 256
TTFT_MS, TPOT_MS = 80.0, 4.0
# Standard deviations of logarithms, by noise.py.
TTFT = {"block": 0.0, "turn": 0.028, "first": -0.095, "wave": 0.098, "own": 0.211}
TPOT = {"block": 0.015, "turn": 0.013, "first": 0.0, "wave": 0.025, "own": 0.004}
START_NS = 1_800_000_000_000_000_000


def made_run(
    rng: np.random.Generator, ratio: float, blocks: int, requests: int = 64
) -> tuple[EngineData, EngineData]:
    """Engines b and a of one run: b's times are a's by `ratio`, but for chance."""
    ttft, tpot = (np.exp(rng.normal(0, sizes["block"], blocks)) for sizes in (TTFT, TPOT))
    return (
        _engine(rng, ratio * ttft, ratio * tpot, requests),
        _engine(rng, ttft, tpot, requests),
    )


def _engine(
    rng: np.random.Generator, ttft_scale: np.ndarray, tpot_scale: np.ndarray, requests: int
) -> EngineData:  # columns as a journal's, without the events
    blocks = len(ttft_scale)
    ttft = TTFT_MS * _times(rng, TTFT, ttft_scale, requests)
    tpot = TPOT_MS * _times(rng, TPOT, tpot_scale, requests)
    e2e = ttft + tpot * (TOKENS - 1)
    waves = -(-requests // WAVE)
    # A wave begins when the one before has ended, the next turn a minute later.
    padded = np.zeros((blocks, waves * WAVE))
    padded[:, :requests] = e2e
    lengths = padded.reshape(blocks, waves, WAVE).max(axis=2)
    begins = np.cumsum(lengths, axis=1) - lengths
    seconds = lengths.sum(axis=1) / 1e3
    turn_ns = START_NS + np.concatenate(([0], np.cumsum(seconds + 60)[:-1])) * 1e9
    sent = turn_ns[:, None] + np.repeat(begins, WAVE, axis=1)[:, :requests] * 1e6
    n = blocks * requests
    number = {name: np.full(n, np.nan) for name in NUMBERS}
    number |= {"ttft_ms": ttft.ravel(), "tpot_ms": tpot.ravel(), "e2e_ms": e2e.ravel()}
    number |= {"complete_ms": e2e.ravel(), "output_tokens": np.full(n, float(TOKENS))}
    whole = {name: np.zeros(n, dtype=np.int64) for name in WHOLE}
    whole |= {"sent_ns": np.ceil(sent).astype(np.int64).ravel()}
    whole |= {name: np.repeat(np.arange(blocks), requests) for name in ("turn", "block")}
    word = {name: np.full(n, None, dtype=object) for name in WORDS}
    word |= {"outcome": np.full(n, "ok", dtype=object), "phase": np.full(n, "measure", dtype=object)}
    columns = Columns(
        number=number,
        whole=whole,
        word=word,
        flag={name: np.zeros(n, dtype=np.bool_) for name in FLAGS},
        scheduled_lag_ms=np.full(n, np.nan),
        tokens=number["output_tokens"],
        event_tokens_known=np.zeros(n, dtype=np.bool_),
        starts=np.zeros(n + 1, dtype=np.int64),
        event_us=np.empty(0, dtype=np.int64),
        event_tokens=np.empty(0, dtype=np.int64),
    )
    turns = [
        Turn(k, k, int(turn_ns[k]), int(turn_ns[k] + seconds[k] * 1e9), float(seconds[k]))
        for k in range(blocks)
    ]
    return EngineData(columns, turns, {})


def _times(rng: np.random.Generator, sizes: dict[str, float], scale: np.ndarray, requests: int) -> np.ndarray:
    """blocks x requests: lognormal, with parts that a turn and a wave have in common."""
    blocks, waves = len(scale), -(-requests // WAVE)
    luck = rng.normal(0, sizes["wave"], (blocks, waves))
    luck[:, 0] += sizes["first"]
    wave = np.repeat(luck, WAVE, axis=1)[:, :requests]
    turn = rng.normal(0, sizes["turn"], (blocks, 1))
    own = rng.normal(0, sizes["own"], (blocks, requests))
    times: np.ndarray = scale[:, None] * np.exp(turn + wave + own)
    return times


def compare_made(
    rng: np.random.Generator, ratio: float, blocks: int, requests: int = 64, *, apart: bool = False
) -> list[Comparison]:
    """The comparison of one made run, or of two where `apart`."""
    slow, fast = made_run(rng, ratio, blocks, requests)
    if apart:
        fast = made_run(rng, 1.0, blocks, requests)[1]
    return compare_pairs([(Side.of("b", slow), Side.of("a", fast))], paired=not apart)


def repeat(
    runs: int, ratio: float, blocks: int, requests: int = 64, *, apart: bool = False, seed: int = 1
) -> dict[str, Counter[str]]:
    """By figure and statistic: runs, and those whose interval held the ratio (`held`), lay beyond the margin
    (`alone`), was claimed after correction (`claimed`), or had no interval (`none`)."""
    rng = np.random.default_rng([seed, blocks, requests, round(ratio * 1000), apart])
    out: dict[str, Counter[str]] = {}
    for _ in range(runs):
        for c in compare_made(rng, ratio, blocks, requests, apart=apart):
            name = c.figure.name if c.statistic in (MEAN, VALUE) else f"{c.figure.name} {c.statistic}"
            seen = out.setdefault(name, Counter())
            seen["runs"] += 1
            low, high = c.ratio.low, c.ratio.high
            if low is None or high is None:
                seen["none"] += 1
                continue
            true = 1 / ratio if c.figure.higher_is_better else ratio
            seen["held"] += low <= true <= high
            seen["alone"] += low > MARGIN or high < 1 / MARGIN
            seen["claimed"] += c.decision.answer == BETTER
    return out


def table(results: list[dict[str, Any]]) -> list[str]:
    """Lines of Markdown: for each figure the shares that held the ratio (over all true ratios) and claimed a
    difference, by number of blocks."""
    blocks = sorted({r["blocks"] for r in results})
    ratios = sorted({r["ratio"] for r in results})
    heads = ["held it", *(f"claimed at {ratio}" for ratio in ratios)]
    numbers = " / ".join(map(str, blocks))
    lines = [f"| {numbers} blocks | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, first in results[0]["figures"].items():
        if first.get("none") == first["runs"]:
            continue

        def shares(key: str, ratio: float | None = None, name: str = name) -> str:
            out = []
            for n in blocks:
                some = [
                    r["figures"][name] for r in results if r["blocks"] == n and ratio in (None, r["ratio"])
                ]
                out.append(sum(of[key] for of in some) / sum(of["runs"] for of in some))
            return " / ".join(f"{share * 100:.1f}" for share in out) + " %"

        cells = [shares("held"), *(shares("claimed", ratio) for ratio in ratios)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--blocks", default="6,8,12")
    parser.add_argument("--ratios", default="1.05,1.2")
    parser.add_argument("--turn", type=int, default=64, metavar="N", help="requests of a turn")
    parser.add_argument("--apart", action="store_true", help="two runs whose blocks nothing pairs")
    parser.add_argument("--output", type=Path, help="write the counts here, as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print what --output wrote, in Markdown")
    args = parser.parse_args()
    if args.table:
        print("\n".join(table(json.loads(args.table.read_text()))))
        return 0
    results = []
    for blocks in map(int, args.blocks.split(",")):
        for ratio in map(float, args.ratios.split(",")):
            start = time.perf_counter()
            found = repeat(args.runs, ratio, blocks, args.turn, apart=args.apart)
            print(
                f"\n{blocks} blocks of {args.turn} requests, true ratio {ratio}, {args.runs:,} runs "
                f"({time.perf_counter() - start:.0f} s)\n"
                f"{'':30}{'interval held it':>18}{'beyond margin':>16}{'claimed':>10}"
            )
            for name, seen in found.items():
                if seen["runs"] > seen["none"]:
                    shares = [seen[k] / args.runs for k in ("held", "alone", "claimed")]
                    print(f"{name:30}{shares[0]:>17.1%} {shares[1]:>15.1%} {shares[2]:>9.1%}", flush=True)
            results.append({"blocks": blocks, "ratio": ratio, "turn": args.turn, "figures": found})
    if args.output:
        args.output.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
