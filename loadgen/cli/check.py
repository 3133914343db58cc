"""`loadgen check RUN --slo ...`: does a run meet its objectives?"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen import exitcodes, stdio
from loadgen.config import ConfigError, load_settings
from loadgen.plain import clean
from loadgen.slo.objectives import parse_slo
from loadgen.slo.presets import MEANINGS, PRESETS

if TYPE_CHECKING:
    from loadgen.slo.check import CheckedRun

HELP = "does a run meet its objectives? An exit code for CI"
USAGE = exitcodes.CANNOT_CHECK
DESCRIPTION = """\
Says of every objective whether the engines of a run meet it, and answers with
the exit code. An objective is met, or not met, only if the 95 % interval of the
figure lies on that side of the limit; else it is not decidable, as it is for a
run that is void."""
EPILOG = """\
objectives, always in quotes, since a shell takes < and > for itself:
  'ttft_p95<500ms'      a percentile (or mean) of ttft, tpot, e2e, ttfa, decode,
                        chunk_gap, first_event, headers, scheduled_ttft,
                        scheduled_e2e; units ms (default), s; decode in tok/s
  'throughput>300'      tokens per second; requests>5, energy<0.4 (J/token)
  'failures<1%'         failed requests of all; failures<=0: of this run, none
  'goodput>0.99'        share of requests that keep every limit for a request;
  'goodput>5/s'         ... such requests per second
  'ttft<500ms'          a limit for a request, for goodput; without any, goodput
                        takes those of the percentiles beside it
presets:
{presets}

examples:
  loadgen check --slo 'ttft_p95<500ms'
  loadgen check latest --slo interactive --slo 'failures<1%' --engine vllm
  loadgen check latest --slo 'goodput>0.95, ttft<300ms, tpot<40ms' --json
  loadgen check latest --class interactive --slo interactive      of a mix

exit code: 0 all met, 1 something is not met, 2 not decidable (too few samples,
a void run, with --strict a suspect one), 3 a flag or a run that can't be used.
docs/slo.md tells how it is decided."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = DESCRIPTION
    width = max(map(len, PRESETS))
    parser.epilog = EPILOG.format(
        presets="\n".join(
            f"  {name:{width}}  {', '.join(texts)}\n  {'':{width}}  {MEANINGS[name]}"
            for name, texts in PRESETS.items()
        )
    )
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="latest",
        help="a run or suite directory, its name, or `latest`",
    )
    parser.add_argument(
        "--slo",
        metavar="OBJECTIVE",
        action="append",
        default=[],
        help="an objective, a preset, or several with commas between; can be repeated",
    )
    parser.add_argument("--engine", metavar="NAME", action="append", help="only this engine; can be repeated")
    parser.add_argument("--scenario", metavar="NAME", help="of a suite, only runs of this scenario")
    parser.add_argument("--class", dest="traffic_class", metavar="NAME", help="only this traffic class")
    parser.add_argument("--strict", action="store_true", help="a suspect run is not decidable either")
    parser.add_argument("--json", action="store_true", help="print the answers as JSON")
    parser.add_argument(
        "--runs-dir",
        type=Path,
        help="where runs are looked up by name (default: runs_dir of loadgen.toml, else ./runs)",
    )


def execute(args: argparse.Namespace) -> int:
    """The answer as an exit code. Raises ConfigError of objectives, engines or runs that can't be used."""
    try:
        return _answer(args)
    except (ConfigError, OSError):
        raise
    except Exception:  # Python would end with 1, and a gate must not take our mistake for an answer
        traceback.print_exc()
        return USAGE


def _answer(args: argparse.Namespace) -> int:
    slo = parse_slo(args.slo)

    from loadgen.slo.check import check_run, worst
    from loadgen.slo.judge import MET, NOT_DECIDABLE, NOT_MET
    from loadgen.store import StoreError, Suite, resolve

    try:
        target = resolve(args.run, args.runs_dir or load_settings().runs_dir)
        runs = target.runs() if isinstance(target, Suite) else [target]
        gone = target.missing() if isinstance(target, Suite) and not args.scenario else []
        if args.scenario:
            runs = [run for run in runs if run.scenario() == args.scenario]
        asked = {"engines": args.engine or (), "strict": args.strict, "traffic_class": args.traffic_class}
        checked = [check_run(run, slo, **asked) for run in runs]
    except StoreError as e:
        raise ConfigError(clean(e, 1000)) from None
    if args.scenario and not checked:
        raise ConfigError(f"{clean(target.name)} has no run of the scenario {clean(args.scenario)!r}")
    if not checked:
        raise ConfigError(f"{clean(target.name)} is a suite without runs yet")
    for name in args.engine or ():
        if not any(name in c.engines for c in checked):
            raise ConfigError(f"{clean(target.name)} has no engine {clean(name)!r}")
    answer = worst(checked)
    if gone and answer == MET:  # of what is not there nothing is known
        answer = NOT_DECIDABLE
    try:
        _print(args, checked, answer, gone)
    except BrokenPipeError:
        stdio.nobody_reads()  # `loadgen check | head`: the exit code is the answer all the same
    codes = {MET: exitcodes.MET, NOT_MET: exitcodes.NOT_MET}
    return codes.get(answer, exitcodes.NOT_DECIDABLE)


def _print(args: argparse.Namespace, checked: Sequence[CheckedRun], answer: str, gone: Sequence[str]) -> None:
    for name in gone:
        print(
            f"loadgen check: the suite's run {clean(name)} is gone, so nothing is known of it",
            file=sys.stderr,
        )
    if args.json:
        out = {"answer": answer, "runs": [c.to_dict() for c in checked], "missing": list(gone)}
        print(json.dumps(out, indent=2))
    else:
        from loadgen.screen import Console
        from loadgen.slo.screen import print_checked

        print_checked(checked, answer, Console())
    sys.stdout.flush()
