"""`loadgen sweep`: how much can each engine take?"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from loadgen import exitcodes
from loadgen.cli.relay import Relay
from loadgen.cli.run import for_locust, locustfile, refuse_far_workers
from loadgen.config import ConfigError, Settings
from loadgen.plain import clean, plural
from loadgen.screen import Console
from loadgen.slo import parse_slo
from loadgen.store import StoreError, Suite
from loadgen.sweep.arguments import (
    add_sweep_flags,
    parse_margin,
    parse_rates,
    parse_users,
    positive,
    refuse_others,
    seconds_of,
)
from loadgen.sweep.conduct import Conductor
from loadgen.sweep.find import find_sweep, sweep_lock
from loadgen.sweep.names import RATE, USERS, load_words, step_scenario
from loadgen.sweep.plan import Plan, Step, doubling
from loadgen.sweep.record import COMPLETE, FAILED, StepRecord, Sweep
from loadgen.sweep.slo import judge_of, least_requests
from loadgen.sweep.terminal import duration, print_sweep, step_lines
from loadgen.users.hooks import QUIET_ENV
from loadgen.users.options import SCENARIO_ENV, add_options, config_path, effective_defaults, settings_from
from loadgen.users.run import SUITE_ENV
from loadgen.workload.arrivals import PROCESSES
from loadgen.workload.scenarios import CONCURRENCY, OPEN_LOOP, SCENARIOS, Scenario

PASS_ON = True
BLOCKS = 2
TURN_REQUESTS = 8
REQUESTS_PER_USER = 4
FIRST, LAST = 1, 256
SLO_REFINE = 2
TURN_SECONDS = 30.0

DESCRIPTION = """\
How much can each engine take? Users are raised step by step until an engine's
throughput stops rising, its SLO breaks or its requests fail. Within a step the
engines take turns (ABBA) with the same prompts. What is found: the knee, beyond
which more users only wait, and the highest load within the SLO."""

EPILOG = """\
examples:
  loadgen sweep                           1, 2, 4, ... 256 users
  loadgen sweep --to 64 --slo 'ttft_p95<500ms'
  loadgen sweep --users 1,8,16,24,32 --all --blocks 6
  loadgen sweep --rates 1,2,4,8,16        requests a second, in an open loop
  loadgen sweep --resume                  go on with the latest one
  loadgen sweep --show latest --json

Each step is a run in the sweep's directory, a scenario of its own by the name
of workload and users (concurrency_16): see it with `loadgen summary`. A sweep
can be ended at any time (Ctrl-C), and resumed.

exit code: 0 the sweep is complete, 1 it could not go on, 2 a flag that can't be
used, 130 Ctrl-C."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    add_sweep_flags(parser)
    parser.add_argument("-t", "--duration", metavar="TIME", help="limit of each step, as 90s, 20m or 1h30m")
    parser.add_argument("--config", metavar="FILE", help="the same as --loadgen-config")
    named = next((a for flag, a in zip(sys.argv, sys.argv[1:], strict=False) if flag == "--workload"), "")
    rates = any(a.partition("=")[0] == "--rates" for a in sys.argv)
    add_options(parser, effective_defaults(_scenario(named, rates), config_path(for_locust(sys.argv))))


def execute(args: argparse.Namespace) -> int:
    own, rest = _own(args.argv)
    try:
        if args.show or args.resume:
            refuse_others(own, rest)
            suite = find_sweep(args.show or args.resume, Path(args.runs_dir))
            sweep = Sweep.read(suite.path)
            if args.show:
                return _show(sweep, args.json)
            with sweep_lock(suite.path):
                return _go(Sweep.read(suite.path), suite, args.json)
        sweep = _new(args, rest)
        sweep.asked_engines = own.engine or []
        suite = Suite.create(Path(args.runs_dir), "sweep")
        sweep.name = suite.name
        with sweep_lock(suite.path):
            return _go(sweep, suite, args.json)
    except StoreError as e:
        print(f"loadgen sweep: {clean(e, 1000)}", file=sys.stderr)
        return exitcodes.FAILED


def _scenario(workload: str, rates: bool) -> Scenario:
    scenario = SCENARIOS.get(workload, OPEN_LOOP if rates else CONCURRENCY)
    return replace(scenario, blocks=BLOCKS, turn_requests=TURN_REQUESTS)


def _own(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The sweep's own flags, with those that it gives each step itself; and the rest, for the runs."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_sweep_flags(parser)
    for flag in ("--blocks", "--turn-requests", "--turn-seconds", "--runs-dir"):
        parser.add_argument(flag)
    parser.add_argument("--engine", action="append")
    own, rest = parser.parse_known_args(argv)
    return own, for_locust(rest)


def _new(args: argparse.Namespace, rest: list[str]) -> Sweep:
    """The sweep that the flags ask for. Raises ConfigError."""
    rates = args.rates is not None
    workload = args.workload or (OPEN_LOOP if rates else CONCURRENCY).name
    locustfile(workload)
    refuse_far_workers("a sweep", rest)
    scenario = _scenario(workload, rates)
    config = config_path(for_locust(args.argv))
    settings: Settings = settings_from(args, scenario, effective_defaults(scenario, config), config)
    if settings.shape:
        raise ConfigError(
            "each step of a sweep has a fixed number of users: leave --shape away, or take "
            "`loadgen run ramp --shape steps`, which has all steps in one run"
        )
    if args.duration is not None:
        seconds_of("--duration", args.duration)
    _fit(args, settings, workload, rest)
    if args.users and (args.first or args.last):
        raise ConfigError("--users names every step: leave --from and --to away")
    first = positive("--from", args.first if args.first is not None else FIRST)
    last = positive("--to", args.last if args.last is not None else max(LAST, first))
    if first > last:
        raise ConfigError(f"--from {first} is beyond --to {last}")
    slo = parse_slo(args.slo) if args.slo else None
    refine = args.refine if args.refine is not None else SLO_REFINE if slo else 0
    per_user = REQUESTS_PER_USER if args.requests_per_user is None else args.requests_per_user
    turn_requests = settings.turn_requests
    if slo and turn_requests == TURN_REQUESTS:
        turn_requests = max(turn_requests, -(-least_requests(slo) // settings.blocks))
    return Sweep(
        name="",
        workload=workload,
        plan=Plan(
            _loads(args, first, last),
            margin=parse_margin(args.margin or "5%"),
            slo=slo is not None,
            refine=positive("--refine", refine, 0),
            stop=not args.all,
            variable=RATE if rates else USERS,
        ),
        flags=rest,
        slo=list(args.slo or []),
        blocks=settings.blocks,
        requests_per_user=positive("--requests-per-user", per_user),
        turn_requests=turn_requests,
        turn_seconds=(settings.open_loop.turn_s or TURN_SECONDS) if rates else 0.0,
    )


def _fit(args: argparse.Namespace, settings: Settings, workload: str, rest: list[str]) -> None:
    """Users are raised in a closed loop, rates in an open one. Raises ConfigError."""
    if args.rates is None:
        if settings.open:
            raise ConfigError("an open loop has no users to raise: name the steps with --rates 1,2,4")
        if settings.prompt_lengths:
            raise ConfigError(
                "several prompt lengths are measured by one user, and a sweep raises users: take one length, "
                "or --mix"
            )
        return
    if any(flag.partition("=")[0] == "--rate" for flag in rest):
        raise ConfigError("--rates names every step's rate: leave --rate away")
    if args.users or args.first or args.last or args.requests_per_user:
        raise ConfigError("--rates names every step, and an open loop has no users: leave their flags away")
    if settings.arrival not in PROCESSES:
        raise ConfigError(f"{workload} has no rate: add --arrival poisson, constant or gamma")


def _loads(args: argparse.Namespace, first: int, last: int) -> tuple[float, ...]:
    if args.rates is not None:
        return parse_rates(args.rates)
    return parse_users(args.users) if args.users else doubling(first, last)


def _go(sweep: Sweep, suite: Suite, as_json: bool) -> int:
    relay = Relay()
    output = subprocess.DEVNULL  # a step's own table: the sweep has one for all

    def run_step(step: Step) -> int:
        scenario = step_scenario(sweep.workload, step.load)
        env = {**os.environ, SUITE_ENV: str(suite.path.resolve()), SCENARIO_ENV: scenario}
        if sweep.steps:
            env[QUIET_ENV] = "1"
        return relay.run(step_command(sweep, step), env, output)

    judge = judge_of(parse_slo(sweep.slo)) if sweep.slo else None
    conductor = Conductor(sweep, suite, run_step, lambda: relay.interrupted, judge)
    conductor.before = lambda step: _before(conductor, step)
    conductor.after = lambda step, record: _after(sweep, step, record)
    state = conductor.go()
    if not sweep.steps and not suite.runs():
        shutil.rmtree(suite.path, ignore_errors=True)  # the child has said why
        return exitcodes.INTERRUPTED if relay.interrupted else exitcodes.FAILED
    if conductor.failure:
        print(f"loadgen sweep: {clean(conductor.failure, 500)}", file=sys.stderr)
    _show(sweep, as_json)
    print(f"sweep directory: {suite.path}", file=sys.stderr)
    if state != COMPLETE:
        print(f"to go on: loadgen sweep --resume {suite.name}", file=sys.stderr)
    return {COMPLETE: exitcodes.OK, FAILED: exitcodes.FAILED}.get(state, exitcodes.INTERRUPTED)


def step_command(sweep: Sweep, step: Step) -> list[str]:
    """`loadgen run` for one step."""
    flags = [sweep.engines[name] for name in step.engines] or sweep.asked_engines
    return [
        *(sys.executable, "-m", "loadgen.cli", "run", sweep.workload, *sweep.flags),
        *("--rate" if sweep.variable == RATE else "--users", f"{step.load:.10g}"),
        *("--turn-requests", str(sweep.requests(step.load))),
        *("--blocks", str(sweep.blocks)),
        *(part for flag in flags for part in ("--engine", flag)),
    ]


def _before(conductor: Conductor, step: Step) -> None:
    sweep = conductor.sweep
    parts = [plural(sweep.requests(step.load), "request") + " a turn", plural(sweep.blocks, "block")]
    pace = conductor.pace()
    if step.engines and (seconds := pace.step_s(step.load, step.engines)):
        parts.append(f"about {duration(seconds)}")
        left = pace.raising_s(sweep.plan, sweep.history())
        if left and left > 1.1 * seconds:
            parts.append(f"at most {duration(left)} up to {load_words(sweep.plan.loads[-1], sweep.variable)}")
    who = f" ({', '.join(map(clean, step.engines))})" if step.engines else ""
    what = "between two steps: " if step.searching else ""
    number = len(sweep.steps) + 1
    print(
        f"\n[step {number}] {what}{load_words(step.load, sweep.variable)}{who}: {', '.join(parts)}",
        file=sys.stderr,
        flush=True,
    )


def _after(sweep: Sweep, step: Step, record: StepRecord) -> None:
    for line in step_lines(step.load, record.engines, sweep.variable):
        print(line, file=sys.stderr, flush=True)


def _show(sweep: Sweep, as_json: bool) -> int:
    if as_json:
        print(json.dumps(sweep.to_dict(), indent=2), flush=True)
    else:
        print_sweep(sweep, Console())
    return exitcodes.OK
