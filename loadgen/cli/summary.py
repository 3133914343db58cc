"""`loadgen summary RUN`: the figures of a run or suite."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.text import Text

from loadgen import exitcodes
from loadgen.config import ConfigError, load_settings
from loadgen.report import summarise, to_json, write_summary
from loadgen.report.plain import clean
from loadgen.report.terminal import print_summaries
from loadgen.screen import Console
from loadgen.store import RunDir, StoreError, Suite, resolve

HELP = "print the figures of a run or suite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="latest",
        help="a run or suite directory, its name, or `latest`",
    )
    parser.add_argument(
        "--runs-dir",
        type=Path,
        help="where runs are looked up by name (default: runs_dir of loadgen.toml, else ./runs)",
    )
    parser.add_argument("--json", action="store_true", help="print {scenario: {engine: {metric: figures}}}")
    parser.add_argument("--write", action="store_true", help="also write summary.json into the directory")
    parser.add_argument(
        "--parquet",
        action="store_true",
        help="also write requests.parquet and chunk_events.parquet into each run's directory",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 0 where a summary was printed, also of a run with damaged lines (told on stderr with --json,
    beside the figures without); 1 where there is none to print."""
    try:
        target = resolve(args.run, args.runs_dir or load_settings().runs_dir)
        summaries = summarise(target)
        if args.json:
            for summary in summaries:
                for warning in summary.warnings:
                    print(f"warning: {clean(summary.name)}: {clean(warning, 300)}", file=sys.stderr)
            print(json.dumps(to_json(summaries), indent=2), flush=True)
        elif not summaries:
            print(f"{clean(target.name)} is a suite without runs yet")
        else:
            print_summaries(summaries, Console())
        if args.write:
            write_summary(target)
        if args.parquet:
            _export(target)
    except (StoreError, ConfigError) as e:
        Console(stderr=True, soft_wrap=True).print(Text(f"loadgen summary: {clean(e, 1000)}"))
        return exitcodes.FAILED
    except BrokenPipeError:
        raise
    except OSError as e:
        print(f"loadgen summary: the figures cannot be printed: {e.strerror or e}", file=sys.stderr)
        return exitcodes.FAILED
    return exitcodes.OK


def _export(target: RunDir | Suite) -> None:
    from loadgen.store.parquet import export

    for one in target.runs() if isinstance(target, Suite) else [target]:
        for path in export(one):
            print(f"wrote {path}", file=sys.stderr)
