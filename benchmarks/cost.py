"""What an event and a request cost the load generator: the figures that `loadgen plan` calculates with.

    python benchmarks/cost.py [--passes 3] [--write]

Runs of long and of short answers against truthd, in passes; shown are medians. With --write they become
loadgen/plan/cost.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence

from runners import ROOT
from truth import BenchError, Timing, Truth, cores

sys.path[:0] = [str(ROOT)]

from loadgen.plan.cost import MEASURED, Cost  # noqa: E402
from loadgen.plan.measure import LONG, SHORT, MeasureError, Sample, measure  # noqa: E402

QUICK = (Sample(32, 256, 1), Sample(16, 16, 16))


def main(argv: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--passes", type=int, default=3)
    p.add_argument("--quick", action="store_true", help="one pass of few streams: does it work?")
    p.add_argument("--write", action="store_true", help=f"to {MEASURED.relative_to(ROOT)}")
    args = p.parse_args(argv)
    found = []
    try:
        core = cores()[1]
        os.sched_setaffinity(0, {core})  # inherited by the generator; truthd goes to the other
        for number in range(1 if args.quick else args.passes):
            with Truth(Timing()) as truth:
                cost = measure(truth.url, "openai", QUICK if args.quick else (LONG, SHORT))
            print(
                f"  pass {number + 1}: {cost.event_us:.2f} us an event, {cost.request_us:.0f} a request",
                file=sys.stderr,
                flush=True,
            )
            found.append(cost.to_dict())
    except (BenchError, MeasureError) as e:
        print(f"\n{e}", file=sys.stderr)
        return 1
    middle = {
        key: round(statistics.median(one[key] for one in found), 4) for key in found[0] if key != "source"
    }
    whole = Cost(source=found[0]["source"], **middle).to_dict()
    text = json.dumps(whole, indent=2) + "\n"
    print(text, end="")
    if args.write:
        MEASURED.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
