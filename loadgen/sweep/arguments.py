"""The flags of a sweep that its runs don't have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from loadgen.cli import values
from loadgen.config import ConfigError
from loadgen.config.openloop import LEAST_RATE
from loadgen.plain import clean
from loadgen.store.rundir import LATEST

LARGEST = 100_000
AGAIN = ("resume", "show", "json", "runs_dir")  # flags that a sweep which exists may be given


def add_sweep_flags(parser: argparse.ArgumentParser) -> None:
    """What is raised, how far, and when it ends. Those of one run come from loadgen.users.options."""
    group = parser.add_argument_group("the sweep")
    add = group.add_argument
    add("-u", "--users", metavar="LIST", help="the steps, as 1,2,4,8,16")
    add("--rates", metavar="LIST", help="or: requests a second, as 1,2,4,8, in an open loop")
    add("--from", dest="first", type=int, metavar="N", help="or: from so many users (default 1)")
    add("--to", dest="last", type=int, metavar="N", help="doubled up to so many (default 256)")
    add(
        "--slo",
        action="append",
        metavar="SLO",
        help="what must hold, as 'ttft_p95<500ms' or a preset's name; several with commas between",
    )
    add(
        "--margin",
        metavar="PERCENT",
        help="throughput that rises less over two steps has stopped rising (default 5%%)",
    )
    add(
        "--refine",
        type=int,
        metavar="N",
        help="steps an engine to search between two others: for the SLO's edge, else for the knee "
        "(default: 2 with --slo, else 0)",
    )
    add("--requests-per-user", type=int, metavar="N", help="length of a turn (default 4)")
    add("--all", action="store_true", help="measure every step, whatever the ones before say")
    add(
        "--workload",
        metavar="NAME",
        help="what is sent: single_user, long_prompt, concurrency (default), mixed, chat, open_loop (default "
        "of rates) or a locustfile of your own",
    )
    add(
        "--resume",
        nargs="?",
        const=LATEST,
        metavar="SWEEP",
        help="go on with a sweep that was ended (default: the latest)",
    )
    add("--show", nargs="?", const=LATEST, metavar="SWEEP", help="print a sweep's result again")
    add("--json", action="store_true", help="print the result as JSON, as in sweep.json")


def parse_users(text: str) -> tuple[int, ...]:
    """`1,2,4`, in any order. Raises ConfigError."""
    try:
        loads = tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        loads = ()
    if not loads or not 1 <= loads[0] <= loads[-1] <= LARGEST:
        shown = clean(text, 60)
        raise ConfigError(f"--users {shown!r} is no list of steps: write it as 1,2,4,8,16, up to {LARGEST:,}")
    return loads


def parse_rates(text: str) -> tuple[float, ...]:
    """`0.5,1,2`, in any order. Raises ConfigError.

    >>> parse_rates("4,0.5,4")
    (0.5, 4.0)
    """
    try:
        loads = tuple(sorted({float(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        loads = ()
    if not loads or not all(LEAST_RATE <= load <= LARGEST for load in loads):
        shown = clean(text, 60)
        raise ConfigError(f"--rates {shown!r} is no list of rates: write it as 1,2,4,8, up to {LARGEST:,}")
    return loads


def parse_margin(text: str) -> float:
    """`5%` or `5` as the factor 1.05, as `loadgen compare` reads it. Raises ConfigError.

    >>> parse_margin("5%"), parse_margin("10")
    (1.05, 1.1)
    """
    try:
        return values.margin(text)
    except argparse.ArgumentTypeError as e:
        raise ConfigError(f"--margin {e}") from None


def positive(flag: str, value: int, least: int = 1) -> int:
    """Raises ConfigError below `least`, or beyond any use."""
    if not least <= value <= LARGEST:
        raise ConfigError(f"{flag} {value}: take a whole number from {least} to {LARGEST:,}")
    return value


def seconds_of(flag: str, text: str) -> int:
    """A time as Locust reads it: 90, 90s, 20m, 1h30m. Raises ConfigError, before any step is begun.

    >>> seconds_of("-t", "1h30m")
    5400
    """
    from locust.util.timespan import parse_timespan

    try:
        seconds = int(parse_timespan(text))
    except (ValueError, OverflowError):
        seconds = 0
    if seconds < 1:
        raise ConfigError(f"{flag} {clean(text, 40)!r} is no time: write it as 90s, 20m or 1h30m")
    return seconds


def refuse_others(own: argparse.Namespace, rest: Sequence[str]) -> None:
    """A sweep goes on with the flags that it was started with. Raises ConfigError if others are given."""
    if [name for name, value in vars(own).items() if value and name not in AGAIN] or rest:
        raise ConfigError("a sweep that exists has its flags already: leave all others away")
