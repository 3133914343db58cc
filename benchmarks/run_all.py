"""`make bench`: all variants one after the other, into benchmarks/out/results.json and tables.txt."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memory import memory, sentence
from runners import RUNNERS, Load
from streams import bench, table
from truth import HERE, BenchError, Timing

OUT = HERE / "out"
FEW = ("floor", "floor-sweep", "ours", "ours-bare", "aiohttp-uvloop")


@dataclass(frozen=True)
class Variant:
    """One table: rounds are fewer where a round has more streams."""

    name: str
    load: Load
    clients: tuple[str, ...]
    passes: int = 2


VARIANTS = (
    Variant("256", Load(256, 3, 256, Timing()), tuple(RUNNERS)),
    Variant("256, role chunk ahead", Load(256, 3, 256, Timing(role_ms=1.0)), FEW),
    Variant("512", Load(512, 2, 256, Timing()), FEW),
    Variant("1000", Load(1000, 2, 256, Timing()), ("floor", "floor-sweep", "ours")),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="variants whose name begins so")
    only = parser.parse_args(argv).only or ""
    OUT.mkdir(exist_ok=True)
    results: dict[str, Any] = {}
    texts: list[str] = []
    started = time.monotonic()
    try:
        for variant in VARIANTS:
            if not variant.name.startswith(only):
                continue
            print(f"{variant.name} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
            outcome = bench(variant.load, variant.clients, variant.passes)
            results[variant.name] = outcome
            texts.append(table(outcome))
            print(f"\n{texts[-1]}\n", flush=True)
        if not only:
            print("memory", file=sys.stderr, flush=True)
            results["memory"] = memory(512, 2, 256)
            texts.append(sentence(results["memory"]))
            print(texts[-1])
    except BenchError as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    (OUT / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (OUT / "tables.txt").write_text("\n\n".join(texts) + "\n")
    print(f"\nall figures: {OUT / 'results.json'} ({time.monotonic() - started:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
