"""`loadgen sim`: simulated vLLM and llama.cpp servers, for trying things out without a model or a GPU."""

from __future__ import annotations

import argparse
import sys

from loadgen import exitcodes
from loadgen.sim.faults import describe
from loadgen.sim.main import run
from loadgen.sim.options import add_options, to_options
from loadgen.sim.server import Server

DESCRIPTION = """\
Start servers that answer as vLLM and llama.cpp do, with the speed of a
published experiment (Qwen3-8B on two Tesla V100), until Ctrl-C. Nothing is
computed: the words are random, the times are modelled. Every response carries
the header X-Loadgen-Simulated.

With no flags: vLLM on 127.0.0.1:8000 and llama.cpp on 127.0.0.1:8001, where
all other commands look first."""
EPILOG = """\
examples:
  loadgen sim                             both engines, reference speeds
  loadgen sim --speed 10                  the same, ten times faster
  loadgen sim --kind llamacpp --port 9000 --slots 16
  loadgen sim --fault stall:20@0.1        one request in ten hangs at token 20
  loadgen sim --log true-times.jsonl      what was really sent, and when"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags, on the parser that the command made."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = DESCRIPTION
    parser.epilog = EPILOG
    add_options(parser)


def execute(args: argparse.Namespace) -> int:
    """Run until Ctrl-C; the exit code."""
    if args.faults:
        print(describe())
        return exitcodes.OK
    try:
        options = to_options(args)
    except ValueError as e:
        print(f"loadgen sim: {e}", file=sys.stderr)
        return exitcodes.USAGE
    return run(options, _greet)


def _greet(servers: list[Server]) -> None:
    for s in servers:
        c = s.constants
        speed = "" if s.options.speed == 1 else f", {s.options.speed:g} times faster"
        slots = f"{c.slots} slots" if s.options.kind == "llamacpp" else f"up to {c.slots} sequences"
        print(f"{s.options.kind:9} {s.url}  simulated: {s.view.preset}{speed}, {slots}, context {c.context}")
    print()
    if [s.port for s in servers] == [8000, 8001]:
        print("In another terminal:  loadgen engines      what is there")
        print("                      loadgen run concurrency")
    else:
        flags = " ".join(f"--engine {s.options.kind}={s.options.kind}:{s.url}" for s in servers)
        print(f"In another terminal:  loadgen run concurrency {flags}")
    print("Ctrl-C stops.", flush=True)
