"""`loadgen plan`: what a load needs of workers, cores, memory, network and disk."""

from __future__ import annotations

import argparse
import json
import math

from loadgen import exitcodes
from loadgen.config import ConfigError
from loadgen.plan import Cost, Load, plan_for
from loadgen.plan.estimate import BUSY

DESCRIPTION = """\
How many workers does a load need, and what else? Calculated from what an event
and a request have been measured to cost the load generator: on the machine of
benchmarks/README.md, or with --measure on this one."""

EPILOG = """\
examples:
  loadgen plan --concurrency 2000 --tokens-per-second 40
  loadgen plan --concurrency 256 --tokens-per-second 60 --output-tokens 1024
  loadgen plan --rate 50 --tokens-per-second 40 --ttft 1
  loadgen plan --concurrency 2000 --tokens-per-second 40 --measure

--tokens-per-second is of each stream, not of all. A model that speculates puts
several tokens into an event: --events-per-token 0.4, say. docs/distributed.md
tells how it is calculated, and how to start workers.

exit code: 0, or 1 if nothing could be measured, 2 a flag that can't be used."""

MOST = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--concurrency", "-u", metavar="N", help="streams at once, that is users")
    size.add_argument("--rate", metavar="R", help="or: requests/s of an open loop")
    parser.add_argument("--tokens-per-second", metavar="X", required=True, help="tokens/s of each stream")
    parser.add_argument(
        "--events-per-token", metavar="X", default="1", help="SSE events of a token (default: 1)"
    )
    parser.add_argument("--prompt-tokens", metavar="N", default="50", help="of a request (default: 50)")
    parser.add_argument("--output-tokens", metavar="N", default="256", help="of an answer (default: 256)")
    parser.add_argument("--ttft", metavar="S", default="0.5", help="seconds to a first token (default: 0.5)")
    parser.add_argument(
        "--busy",
        metavar="PERCENT",
        default=f"{BUSY * 100:g}%",
        help=f"how busy a worker may be (default: {BUSY:.0%}; a busier one reads and sends late)".replace(
            "%", "%%"
        ),
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure the cost on this machine first, with two runs against a simulated engine (20 s)",
    )
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")


def execute(args: argparse.Namespace) -> int:
    load = Load(
        concurrency=1 if args.concurrency is None else _whole("--concurrency", args.concurrency),
        tokens_per_second=_number("--tokens-per-second", args.tokens_per_second),
        events_per_token=_number("--events-per-token", args.events_per_token),
        prompt_tokens=_whole("--prompt-tokens", args.prompt_tokens),
        output_tokens=_whole("--output-tokens", args.output_tokens),
        ttft_s=_number("--ttft", args.ttft),
    )
    if args.rate is not None:
        load = load.at_rate(_number("--rate", args.rate))
    busy = _number("--busy", args.busy.strip().removesuffix("%")) / 100
    if busy > 1:
        raise ConfigError(f"--busy {args.busy}: a worker has one core, so 100% is all of it")
    cost = _measured() if args.measure else Cost.default()
    if cost is None:
        return exitcodes.FAILED
    plan = plan_for(load, cost, busy=busy)

    from loadgen.plan.machine import Machine

    machine = Machine.here()
    if args.json:
        whole = {
            "plan": plan.to_dict(),
            "cost": cost.to_dict(),
            "machine": machine.to_dict(),
            "lacks": machine.lacks(plan),
        }
        print(json.dumps(whole, indent=2))
    else:
        from loadgen.plan.screen import lines

        print("\n".join(lines(plan, cost, machine)))
    return exitcodes.OK


def _measured() -> Cost | None:
    import locust  # noqa: F401  (patches the standard library, must come before what is measured)

    import sys

    from loadgen.plan.measure import MeasureError, measure
    from loadgen.sim.launch import SimProcess

    print("measuring: two runs against a simulated engine, about 20 s", file=sys.stderr, flush=True)
    try:
        with SimProcess("vllm", preset="vllm-steady") as sim:
            return measure(sim.url)
    except (MeasureError, RuntimeError) as e:
        print(f"loadgen plan: {e}", file=sys.stderr)
        return None


def _whole(flag: str, text: str) -> int:
    value = _number(flag, text)
    if value != int(value):
        raise ConfigError(f"{flag} {text!r} is not a whole number")
    return int(value)


def _number(flag: str, text: str) -> float:
    """A positive number of a size that can be counted with. Raises ConfigError."""
    try:
        value = float(text)
    except ValueError:
        raise ConfigError(f"{flag} {text!r} is not a number") from None
    if not (math.isfinite(value) and 0 < value <= MOST):
        raise ConfigError(f"{flag} {text} must be greater than 0 and at most {MOST:,.0f}")
    return value
