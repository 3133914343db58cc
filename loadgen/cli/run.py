"""`loadgen run WORKLOAD`: a measurement without knowing Locust, or all three in a row."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import loadgen
from loadgen import exitcodes
from loadgen.cli.relay import Relay
from loadgen.config import ConfigError
from loadgen.store import StoreError, Suite
from loadgen.users.hooks import PLAIN_ENV
from loadgen.users.options import add_options, config_path, effective_defaults
from loadgen.users.run import SUITE_ENV
from loadgen.workload.scenarios import REFERENCE, SCENARIOS

PASS_ON = True
EMPTY_ALLOWED = True  # some of Locust's flags have a meaning for it
SUITE = "reference"

DESCRIPTION = """\
Run one workload against the engines and print the result. They take turns
(ABBA BAAB) with the same prompts, each turn is a fixed number of requests, and
nothing is cut: see docs/method.md."""

EPILOG = """\
workloads:
{workloads}
  reference      the first three, one after the other, in one suite directory
  FILE.py        a locustfile of your own

examples:
  loadgen run concurrency
  loadgen run single_user --engine fp8=vllm:http://gpu:8000 \\
                          --engine q4=llamacpp:http://gpu:8001
  loadgen run concurrency -u 64 --turn-requests 256 --duration 20m
  loadgen run long_prompt --prompt-tokens 2000,8000,32000
  loadgen run mixed --mix interactive=70,long=20,batch=10
  loadgen run reference --runs-dir results

All other flags go to Locust, which does the work: --csv, --html, ..."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    named = next((SCENARIOS[a] for a in sys.argv if a in SCENARIOS), None)
    defaults = effective_defaults(named, config_path(for_locust(sys.argv)))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = DESCRIPTION
    lines = (f"  {s.name:14} {s.title}, {s.turn_requests} requests a turn" for s in SCENARIOS.values())
    parser.epilog = EPILOG.format(workloads="\n".join(lines))
    parser.add_argument("workload", metavar="WORKLOAD", help="which one, see below")
    parser.add_argument("-u", "--users", metavar="N", help="users, that is requests in flight")
    parser.add_argument(
        "-t", "--duration", metavar="TIME", help="limit, as 90s, 20m or 1h30m; the blocks usually end first"
    )
    parser.add_argument("--config", metavar="FILE", help="the same as --loadgen-config")
    add_options(parser, defaults)


def execute(args: argparse.Namespace) -> int:
    """Locust's exit code: 0, or 1 if requests failed or the run could not be made."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise ConfigError("the current directory has been removed: change into another one") from None
    flags = list(args.argv)
    flags.remove(args.workload)
    flags = for_locust(flags)
    if args.workload == SUITE:
        if args.users:
            raise ConfigError(
                "the workloads of the reference suite have their own users, -u is for one workload"
            )
        refuse_far_workers("the reference suite", flags)
        return run_suite(dict.fromkeys(REFERENCE, flags), Path(args.runs_dir))
    return _one(locustfile(args.workload), flags)


def refuse_far_workers(what: str, flags: Sequence[str]) -> None:
    """Raises ConfigError of a command that is several runs, each of which has a master of its own."""
    if _given(list(flags), "--master", "--worker", "--expect-workers"):
        raise ConfigError(
            f"{what} is several runs, and workers that were started by hand end with the first one: take "
            "--processes N, which starts workers for each run, or make one run at a time"
        )


def locustfile(workload: str) -> Path:
    """The file of a workload, in an installed package or in the repository; or a person's own file."""
    if workload.endswith(".py"):
        return Path(workload)
    if workload not in SCENARIOS:
        known = ", ".join((*SCENARIOS, SUITE))
        raise ConfigError(
            f"there is no workload {workload!r}: take {known}, or a locustfile (FILE.py), and name it before "
            "the flags"
        )
    package = Path(loadgen.__file__).parent
    for folder in (package / "locustfiles", package.parent / "locustfiles"):
        if (file := folder / f"{workload}.py").exists():
            return file
    raise ConfigError(f"the locustfile of {workload} is missing from this installation ({package})")


def for_locust(flags: Sequence[str]) -> list[str]:
    """The flags in Locust's words."""
    words = {"--duration": "--run-time", "--config": "--loadgen-config"}
    out = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        out.append(f"{words.get(name, name)}{equals}{value}" if name.startswith("--") else flag)
    return out


def _one(file: Path, flags: list[str]) -> int:
    """Locust, in this process: signals and exit code are its own."""
    from locust import main as locust_main

    os.environ[PLAIN_ENV] = "1"
    quiet = [] if _given(flags, "-L", "--loglevel", "--logfile") else ["--loglevel", "WARNING"]
    sys.argv = ["locust", "-f", str(file), "--headless", *quiet, *flags]
    try:
        locust_main.main()  # type: ignore[no-untyped-call]
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    return exitcodes.OK


def _given(flags: list[str], *names: str) -> bool:
    return any(flag.partition("=")[0] in names for flag in flags)


def run_suite(flags: Mapping[str, Sequence[str]], runs_dir: Path, *, tables: bool = True) -> int:
    """Several workloads in one suite directory, with the flags of each, each in a process of its own: one
    that fails does not take the others with it. The exit code is the first one that is not 0. `tables`:
    whether each prints its result."""
    try:
        suite = Suite.create(runs_dir)
    except StoreError as e:
        print(f"loadgen run: {e}", file=sys.stderr)
        return exitcodes.FAILED
    relay = Relay()
    codes: dict[str, int] = {}
    for number, (scenario, own) in enumerate(flags.items(), start=1):
        title = SCENARIOS[scenario].title
        print(f"\n[{number}/{len(flags)}] {scenario}: {title}", file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "loadgen.cli", "run", scenario, *own]
        env = {**os.environ, SUITE_ENV: str(suite.path.resolve())}
        codes[scenario] = relay.run(command, env, None if tables else subprocess.DEVNULL)
        if relay.interrupted:
            break
    failed = [f"{name} (exit code {code})" for name, code in codes.items() if code]
    if failed:
        print(f"\nnot without failures: {', '.join(failed)}", file=sys.stderr)
    print(f"\nsuite directory: {suite.path}  (loadgen summary {suite.name})", file=sys.stderr)
    if relay.interrupted:
        return exitcodes.INTERRUPTED
    return next((code for code in codes.values() if code), 0)
