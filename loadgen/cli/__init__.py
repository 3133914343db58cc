"""The `loadgen` command: a module a subcommand, imported only when it is asked for.

A subcommand's module has `add_arguments(parser)` and `execute(args) -> int` or `run(args) -> int`. With
`PASS_ON = True` it takes flags that its parser does not know; `args.argv` holds them all as they were given.
`USAGE` is its exit code for a mistake of the person, where 2 means something else; with
`EMPTY_ALLOWED = True` an argument may be empty.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from loadgen import exitcodes, stdio

COMMANDS: dict[str, str] = {
    "run": "measure: single_user, long_prompt, concurrency, mixed, chat, ...",
    "sweep": "raise the load step by step: knee, highest load within an SLO",
    "summary": "print the figures of a run or suite",
    "compare": "which engine is better, by how much, and how sure that is",
    "runs": "list runs, newest first, with their figures; remove old ones",
    "report": "one HTML file of runs: verdict, pictures, validity, manifest",
    "check": "does a run meet its objectives? An exit code for CI",
    "engines": "what is there: server, version, model, context of each endpoint",
    "ship": "deliver a run to InfluxDB, or what is missing of it there",
    "influx": "check whether InfluxDB is set up right for delivery",
    "sim": "start simulated engines (no model, no GPU)",
    "telemetry": "sample the GPUs of this machine: live table, gpu.jsonl, agent",
    "plan": "how many workers a load needs, and cores, memory, network, disk",
    "web-password": "a password's hash, for the login of Locust's web page",
}

DESCRIPTION = """\
loadgen measures LLM inference servers against each other: time to first token
(TTFT), decode speed, throughput and latency, with the same prompts for each
and in turns, so that the comparison is fair.

commands:
{commands}"""

EPILOG = """\
a first try, without any server of your own:
  loadgen sim                  in one terminal: two simulated engines
  loadgen run concurrency      in another: 16 users at once, then a table

your own servers, as NAME=KIND:URL with kind vllm, llamacpp or openai:
  loadgen engines --engine fp8=vllm:http://gpu:8000
  loadgen run reference --engine fp8=vllm:http://gpu:8000 \\
                        --engine q4=llamacpp:http://gpu:8001
or name them in ./loadgen.toml, or in VLLM_URL and LLAMACPP_URL, and leave the
flags away.

later:
  loadgen summary latest       the figures again; --json for programs
  loadgen compare latest       which engine is better, and how sure that is
  loadgen influx check         is InfluxDB ready for the next runs?
  loadgen ship latest          deliver what InfluxDB does not have of a run
  locust -f locustfiles/concurrency.py     the same run in Locust's web page

`loadgen COMMAND --help` tells more."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; its exit code. A person's mistake is one sentence on stderr."""
    stdio.make_usable()
    args = list(sys.argv[1:] if argv is None else argv)
    commands = "\n".join(f"  {name:12} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="loadgen",
        usage="loadgen [-h] [--version] COMMAND ...",
        description=DESCRIPTION.format(commands=commands),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"loadgen {_version()}")
    parser.add_argument(
        "command",
        choices=COMMANDS,
        metavar="COMMAND",
        help=argparse.SUPPRESS,
    )
    if not args:
        parser.print_help()
        return exitcodes.OK
    command = parser.parse_args(args[:1]).command
    return _run(command, args[1:])


def _run(command: str, argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"loadgen {command}", description=COMMANDS[command], allow_abbrev=False
    )
    usage = exitcodes.USAGE
    try:
        # Here, since imports take most of a second, in which somebody may think better of it.
        from loadgen.config import ConfigError

        module = importlib.import_module(f"loadgen.cli.{command.replace('-', '_')}")
        usage = getattr(module, "USAGE", usage)
        if not getattr(module, "EMPTY_ALLOWED", False):
            _refuse_empty(argv)
        module.add_arguments(parser)
        if getattr(module, "PASS_ON", False):
            args, _ = parser.parse_known_args(argv)
        else:
            args = parser.parse_args(argv)
        args.argv = argv
        execute = module.execute if hasattr(module, "execute") else module.run
        return int(execute(args))
    except KeyboardInterrupt:  # first: when it comes, ConfigError may not be there yet
        return exitcodes.INTERRUPTED
    except SystemExit as e:
        if e.code == exitcodes.USAGE:  # argparse has said what is wrong
            return usage
        raise
    except ConfigError as e:
        print(f"loadgen {command}: {e}", file=sys.stderr)
        return usage
    except BrokenPipeError:
        stdio.nobody_reads()  # `loadgen engines | head`
        return exitcodes.OK
    except OSError as e:  # standard output is a file on a full disk, say
        what = f"{e.filename}: {e.strerror}" if e.filename else f"the output cannot be written: {e.strerror}"
        print(f"loadgen {command}: {what}", file=sys.stderr)
        return usage if usage != exitcodes.USAGE else exitcodes.FAILED


def _refuse_empty(argv: Sequence[str]) -> None:
    """A value of nothing is never meant: `--scenario "$SCENARIO"` of a variable that is not set would else
    choose every scenario, or remove it. Raises ConfigError."""
    from loadgen.config import ConfigError

    before = ""
    for arg in argv:
        flag, sign, value = arg.partition("=")
        if not arg.strip():
            what = before if before.startswith("-") and "=" not in before else "an argument"
        elif flag.startswith("--") and sign and not value.strip():
            what = flag
        else:
            before = arg
            continue
        raise ConfigError(f"{what} is empty: is a variable not set?")


def _version() -> str:
    from loadgen import __version__

    return __version__
