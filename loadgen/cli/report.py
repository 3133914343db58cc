"""`loadgen report RUN...`: one HTML file with verdict, pictures and everything behind them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from loadgen import exitcodes
from loadgen.cli import values
from loadgen.config import load_settings
from loadgen.report.plain import clean
from loadgen.slo.objectives import parse_slo
from loadgen.store import RunDir, StoreError, Suite, resolve

HELP = "one HTML file of a run or several: verdict, pictures, validity"
DESCRIPTION = """\
Writes one HTML file that opens offline, on a telephone and on paper: what came
out, whether it may be believed, distributions, the course in time with turns
and GPUs, what failed, the whole manifest. It can be handed on as it is: it
holds no keys and fetches nothing."""
EPILOG = """\
examples:
  loadgen report                     the latest run or suite, into its directory
  loadgen report latest -o vllm-vs-llamacpp.html
  loadgen report before after        two runs on one page
  loadgen report --slo interactive --slo 'goodput>0.95, tpot<50ms'
                                     and whether each engine keeps these

Without --output: report.html in the directory of RUN; of several,
loadgen-report.html here. It needs plotly: pip install 'loadgen[report]'

exit code: 0 written, whatever it says; 1 no such run, or the file can't be
written; 2 a flag that can't be used."""
SEVERAL = Path("loadgen-report.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="*",
        default=["latest"],
        help="run or suite directories, their names, or `latest`",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="where to write it")
    parser.add_argument("--baseline", metavar="ENGINE", help="compare with this engine (default: the first)")
    parser.add_argument(
        "--gpu-hour",
        type=values.price,
        metavar="PRICE",
        help="price of a GPU hour, for the cost of a million tokens",
    )
    parser.add_argument(
        "--slo",
        metavar="OBJECTIVE",
        action="append",
        default=[],
        help="objectives or presets, as in `loadgen check`, for the page to answer; can be repeated",
    )
    parser.add_argument(
        "--runs-dir",
        type=Path,
        help="where runs are looked up by name (default: runs_dir of loadgen.toml, else ./runs)",
    )


def execute(args: argparse.Namespace) -> int:
    """Exit code 0 where the file was written, whatever it says of the run. Raises ConfigError of objectives
    that can't be read."""
    slo = parse_slo(args.slo) if args.slo else None

    from loadgen.report.html import write_html

    try:
        runs_dir = args.runs_dir or load_settings().runs_dir
        targets = [resolve(name, runs_dir) for name in args.run]
        path = args.output or _beside(targets)
        if path.is_dir():
            raise StoreError(f"{path} is a directory: name a file in it")
        size = write_html(targets, path, baseline=args.baseline, gpu_hour=args.gpu_hour, slo=slo)
    except StoreError as e:
        print(f"loadgen report: {clean(e, 1000)}", file=sys.stderr)
        return exitcodes.FAILED
    except OSError as e:
        print(f"loadgen report: {clean(e.filename or path, 500)}: {e.strerror or e}", file=sys.stderr)
        return exitcodes.FAILED
    # Of /dev/stdout, the page is there and nothing else.
    print(f"wrote {path} ({size / 1e6:.1f} MB)", file=sys.stdout if path.is_file() else sys.stderr)
    return exitcodes.OK


def _beside(targets: Sequence[RunDir | Suite]) -> Path:
    return targets[0].path / "report.html" if len(targets) == 1 else SEVERAL
