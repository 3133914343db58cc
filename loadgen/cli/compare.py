"""`loadgen compare RUN [RUN_B]`: which engine is better, by how much, and how sure that is."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import TypeVar

from loadgen import exitcodes
from loadgen.cli import values
from loadgen.config import ConfigError, load_settings
from loadgen.report.plain import clean
from loadgen.screen import Console
from loadgen.store import StoreError, resolve

T = TypeVar("T")

HELP = "which engine is better, by how much, and how sure that is"

DESCRIPTION = """\
Compares the engines of one run, or of every run of a suite; with two runs,
the second against the first: before and after a change, or two engines that
were measured apart. What differs between two runs is listed first.

Ratios are paired by block (one turn of each engine over the same prompts),
with a 95 % interval. An engine is called better only if its interval lies
beyond the margin, and equal only if it lies within; everything else is
not decidable, with the number of blocks that might decide."""

EPILOG = """\
examples:
  loadgen compare latest                       the engines of the newest run
  loadgen compare latest --baseline fp16       each engine against fp16
  loadgen compare latest --all-pairs           of three or more, each with each
  loadgen compare BEFORE AFTER                 a change of flags or version
  loadgen compare latest --gpu-hour 2.50       and what a million tokens cost
  loadgen compare latest --engine-log vllm=vllm.log
                                               memory: what its log tells
  loadgen compare latest --markdown            for a pull request
  loadgen compare latest --json                for programs

exit codes: 0 a comparison was printed, whatever it says; 1 there is none to
print. `loadgen check` is the command that fails by the result."""

_GPUS = re.compile(r"(?:(?P<engine>[^=]+)=)?(?P<number>[1-9]\d{0,4})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "run", metavar="RUN", nargs="?", default="latest", help="a run or suite: directory, name, or `latest`"
    )
    parser.add_argument("other", metavar="RUN_B", nargs="?", help="a second one, compared with the first")
    parser.add_argument(
        "--runs-dir",
        type=Path,
        help="where runs are looked up by name (default: runs_dir of loadgen.toml, else ./runs)",
    )
    parser.add_argument("--baseline", metavar="ENGINE", help="compare with this engine (default: the first)")
    parser.add_argument(
        "--all-pairs",
        action="store_true",
        help="of three engines or more, compare each with each, not with the baseline alone",
    )
    parser.add_argument(
        "--margin",
        type=values.margin,
        default=1.05,
        metavar="5%",
        help="smaller differences are none (default: 5%%); choose it before you look",
    )
    parser.add_argument(
        "--gpu-hour",
        type=values.price,
        metavar="PRICE",
        help="price of a GPU hour, for the cost of a million tokens",
    )
    parser.add_argument(
        "--gpus",
        type=_gpus,
        action="append",
        default=[],
        metavar="[ENGINE=]N",
        help="GPUs of an engine, or of each (default: those that its processes were seen on)",
    )
    parser.add_argument(
        "--engine-log",
        type=_log,
        action="append",
        default=[],
        metavar="ENGINE=FILE",
        help="an engine's own log, for what its start tells of memory; of two runs, one for each",
    )
    parser.add_argument("--all", action="store_true", help="show all figures, not just the usual ones")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print JSON")
    shape.add_argument("--markdown", action="store_true", help="print Markdown")
    shape.add_argument("--csv", metavar="FILE", help="write rows as CSV to a file, or print them (-)")


def execute(args: argparse.Namespace) -> int:
    """Exit code 0 where a comparison was printed, also of a void run; 1 where there is none."""
    from loadgen.compare.assess import assess
    from loadgen.report.comparison import markdown, print_assessment, write_csv

    if args.all_pairs and args.other is not None:
        _fail("--all-pairs is for the engines of one run or suite, not for two that were made apart")
        return exitcodes.USAGE
    try:
        runs_dir = args.runs_dir or load_settings().runs_dir
        first = resolve(args.run, runs_dir)
        second = resolve(args.other, runs_dir) if args.other is not None else None
        found = assess(
            first,
            second,
            baseline=args.baseline,
            all_pairs=args.all_pairs,
            margin=args.margin,
            gpu_hour=args.gpu_hour,
            gpus=_by_engine(args.gpus),
            logs=_by_engine(args.engine_log),
        )
        names = {re.sub(r" \([AB]\)$", "", engine) for c in found.comparisons for engine in c.engines}
        for name in dict([*args.gpus, *args.engine_log]):
            if name and name not in names:
                return _fail(
                    f"no engine is called {name!r} here; there are {', '.join(sorted(names)) or 'none'}"
                )
        if not found.comparisons:
            return _fail(f"{first.name} is a suite without runs yet")
        if second is not None and not any(c.rows for c in found.comparisons):
            return _fail(f"no engine of {first.name} has a counterpart in {second.name}: was one measured?")
        if not any(c.rows for c in found.comparisons):
            return _fail(
                f"{first.name} has one engine or none, so there is nothing to compare it with: "
                "name a second run, or measure two engines"
            )
        if args.json:
            print(json.dumps(found.to_dict(), indent=2), flush=True)
        elif args.markdown:
            print(markdown(found, everything=args.all), end="", flush=True)
        elif args.csv == "-":
            write_csv(found.comparisons, sys.stdout)
        elif args.csv:
            with open(args.csv, "w", encoding="utf-8", newline="") as out:
                write_csv(found.comparisons, out)
            print(f"wrote {args.csv}", file=sys.stderr)
        else:
            print_assessment(found, Console(), everything=args.all)
    except (StoreError, ConfigError) as e:
        return _fail(str(e))
    except BrokenPipeError:
        raise
    except OSError as e:
        return _fail(f"the comparison cannot be written: {e.strerror or e}")
    return exitcodes.OK


def _fail(sentence: str) -> int:
    print(f"loadgen compare: {clean(sentence, 1000)}", file=sys.stderr)
    return exitcodes.FAILED


def _by_engine(given: list[tuple[str, T]]) -> dict[str, list[T]]:
    out: dict[str, list[T]] = {}
    for engine, value in given:
        out.setdefault(engine, []).append(value)
    return out


def _gpus(text: str) -> tuple[str, int]:
    found = _GPUS.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of GPUs: give 2, or vllm=2")
    return found["engine"] or "", int(found["number"])


def _log(text: str) -> tuple[str, Path]:
    engine, sign, path = text.partition("=")
    if not (engine and sign and path):
        raise argparse.ArgumentTypeError(f"{text!r} does not say whose log it is: give vllm=vllm.log")
    return engine, Path(path)
