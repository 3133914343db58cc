"""`loadgen ship RUN`: deliver to InfluxDB what it does not have yet."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from loadgen import exitcodes
from loadgen.cli.influx import influxdb_of
from loadgen.config import InfluxdbSpec, load_settings
from loadgen.report.plain import clean, plural
from loadgen.store import RunDir, StoreError, Suite, resolve

HELP = "deliver a run to InfluxDB, or what is missing of it there"
DESCRIPTION = """\
Delivers a run, a suite of runs or a recording of telemetry to InfluxDB. A run
that was delivered while it went on, in part or not at all is completed: how far
each file came is kept in its directory (delivery.json). Sending something twice
does no harm, InfluxDB stores it once.

Where to: INFLUXDB_URL, INFLUXDB_TOKEN, INFLUXDB_ORG and INFLUXDB_BUCKET, or the
table [influxdb] of loadgen.toml. To try them: loadgen influx check"""
EPILOG = """\
examples:
  loadgen ship                   what is missing of the latest run
  loadgen ship latest --dry-run  how much that is; sends nothing
  loadgen ship latest --again    all of it: the bucket was lost, or is another's

Lines that are damaged, or that InfluxDB refuses for good, go to
dead-letter.jsonl in the run's directory, with the reason.

exit code: 0 all is there, 1 something is not, 2 a setting is missing."""
SHOW_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="latest",
        help="a run or suite directory, its name, or `latest`",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what is missing")
    parser.add_argument("--again", action="store_true", help="deliver everything, as if nothing were there")
    parser.add_argument(
        "--runs-dir",
        type=Path,
        help="where runs are looked up by name (default: runs_dir of loadgen.toml, else ./runs)",
    )
    parser.add_argument(
        "--config", "--loadgen-config", metavar="FILE", type=Path, help="instead of ./loadgen.toml"
    )


def execute(args: argparse.Namespace) -> int:
    """Exit code 1 if something is not in InfluxDB in the end, refused lines included."""
    spec = influxdb_of(args.config)
    token = "" if args.dry_run else spec.token()
    try:
        target = resolve(args.run, args.runs_dir or load_settings(config_file=args.config).runs_dir)
        runs = target.runs() if isinstance(target, Suite) else [target]
        if not runs:
            print(f"{clean(target.name)} is a suite without runs yet")
        if args.dry_run:
            for run in runs:
                _say_what_is_missing(run, spec, args.again)
            return exitcodes.OK
        codes = [_ship(run, spec, token, args.again) for run in runs]
    except (StoreError, OSError) as e:
        print(f"loadgen ship: {clean(e, 1000)}", file=sys.stderr)
        return exitcodes.FAILED
    return max(codes, default=exitcodes.OK)


def _say_what_is_missing(run: RunDir, spec: InfluxdbSpec, again: bool) -> None:
    from loadgen.sinks.influxdb import destination
    from loadgen.sinks.source import DERIVED, missing_lines, needs_derived

    missing = missing_lines(run, "" if again else destination(spec))
    name = clean(run.name)
    for file, n in missing.items():
        print(f"{name}: {plural(n, 'line')} of {clean(file)}")
    if needs_derived(run):
        print(f"{name}: {DERIVED} (summary, exact windows) is not made yet, or older than the journals")
    elif not missing:
        print(f"{name}: nothing is missing")


def _ship(run: RunDir, spec: InfluxdbSpec, token: str, again: bool) -> int:
    from loadgen.sinks.delivery import Delivery, finish
    from loadgen.sinks.influxdb import InfluxWriter, WriteError
    from loadgen.sinks.lock import delivery_lock
    from loadgen.sinks.sending import GaveUp

    over = threading.Event()
    over.set()  # whatever is there is delivered, nothing is waited for
    progress = Progress(run.name)
    name = clean(run.name)
    with contextlib.closing(InfluxWriter(spec, token)) as writer, delivery_lock(run.path):
        delivery = Delivery(run, writer, ending=over, tell=progress.tell)
        progress.figures = lambda: (delivery.lines, delivery.left())
        if again:
            delivery.again()
        dead = delivery.dead
        why = ""
        try:
            finish(delivery)
        except (WriteError, GaveUp, StoreError) as e:
            why = clean(e, 500)
        finally:
            progress.clear()
        print(f"{name}: {plural(delivery.lines, 'point')} delivered to {spec.url}, bucket {spec.bucket}")
        if why:
            left = delivery.left()
            what = f"{plural(left, 'line')} {'is' if left == 1 else 'are'}" if left else "the summary is"
            print(f"loadgen ship: {name}: {what} left: {why}", file=sys.stderr)
        if refused := delivery.dead - dead:
            lines = plural(refused, "line")
            where = delivery.letters.path
            print(f"loadgen ship: {name}: {lines} could not be delivered, see {where}", file=sys.stderr)
    _say_if_it_goes_on(run)
    return exitcodes.FAILED if why or refused else exitcodes.OK


def _say_if_it_goes_on(run: RunDir) -> None:
    with contextlib.suppress(StoreError):
        if run.manifest().state == "running":
            print(f"{clean(run.name)}: it was killed, or goes on: then deliver it again when it is over")


class Progress:
    """One line on a terminal, rewritten; elsewhere only what the database is waited for, once."""

    def __init__(self, name: str) -> None:
        self.figures: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self._name = clean(name)
        self._at = 0.0
        self._waited = False
        self._shown = False

    def tell(self, state: str, why: str) -> None:
        if state == "waiting" and not self._waited:
            self._waited = True
            self.clear()
            print(f"loadgen ship: {clean(why, 500)}; trying again", file=sys.stderr, flush=True)
        now = time.monotonic()
        if sys.stderr.isatty() and now - self._at >= SHOW_S:
            self._at, self._shown = now, True
            done, left = self.figures()
            text = f"{self._name}: {done:,} points delivered, {left:,} lines left"
            print(f"\r\x1b[K{text[:79]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            self._shown = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
