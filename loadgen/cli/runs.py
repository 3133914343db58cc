"""`loadgen runs`: what runs there are, newest first; `loadgen runs prune` removes old ones."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from loadgen import exitcodes
from loadgen.config import ConfigError, load_settings
from loadgen.plain import clean, plural
from loadgen.store import StoreError
from loadgen.store.inventory import STATES, Entry, Listed, entries

HELP = "list runs, newest first, with their figures; remove old ones"
DESCRIPTION = """\
Lists runs and suites, newest first: state, validity, and of every engine TTFT,
TPOT, throughput and failures. `prune` removes those that are old: it shows what
would go and asks."""
EPILOG = """\
examples:
  loadgen runs                          the newest 20
  loadgen runs --engine vllm --since 7d --state complete
  loadgen runs --model qwen3 --json     for programs
  loadgen runs prune --keep 10          all but the newest ten
  loadgen runs prune --older-than 30d --scenario telemetry --yes

Figures come from summary.json; of a large run that was killed there are none
until `loadgen summary RUN --write` has made it. What runs, is being delivered,
or does not have a name that loadgen gave, is never removed.

exit code: 0, also if there is nothing; 1 something can't be read or removed,
or nobody agreed; 2 a flag that can't be used."""
SHOWN = 20
_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*(m|h|d|w)")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "action", nargs="?", choices=("list", "prune"), default="list", help="list (default) or prune"
    )
    only = parser.add_argument_group("only runs")
    only.add_argument("--scenario", metavar="NAME", help="of this scenario")
    only.add_argument("--engine", metavar="NAME", help="with an engine of this name")
    only.add_argument("--model", metavar="TEXT", help="with a model whose name contains this")
    only.add_argument("--state", metavar="STATE", choices=STATES, help=f"in this state: {', '.join(STATES)}")
    only.add_argument("--since", metavar="WHEN", help="begun since: 12h, 7d, 2w, or 2026-11-30[T16:00]")
    parser.add_argument(
        "-n",
        "--limit",
        metavar="N",
        type=_count,
        default=SHOWN,
        help=f"list so many (default {SHOWN}; 0: all)",
    )
    parser.add_argument("--json", action="store_true", help="list as JSON")
    prune = parser.add_argument_group("prune")
    prune.add_argument("--keep", metavar="N", type=_count, help="spare the newest N of them")
    prune.add_argument("--older-than", metavar="WHEN", help="spare what began since then")
    prune.add_argument("--yes", action="store_true", help="don't ask")
    parser.add_argument(
        "--runs-dir", type=Path, help="where runs are (default: runs_dir of loadgen.toml, else ./runs)"
    )


def execute(args: argparse.Namespace) -> int:
    since_ns = _when_ns(args.since, "--since")
    before_ns = _when_ns(args.older_than, "--older-than")
    if args.action == "prune":
        if args.keep is None and before_ns is None:
            raise ConfigError("prune needs --keep N or --older-than WHEN")
    elif args.keep is not None or before_ns is not None or args.yes:
        raise ConfigError("--keep, --older-than and --yes belong to `loadgen runs prune`")
    runs_dir = args.runs_dir or load_settings().runs_dir
    try:
        found = entries(runs_dir)
        if args.action == "prune":
            # A suite goes as a whole, so all of it must be what was asked for.
            wanted = [e for e in found if e.runs and all(_wanted(r, args, since_ns) for r in e.runs)]
            if not any((args.scenario, args.engine, args.model, args.state, since_ns)):
                wanted = found
            return _prune(wanted, args.keep, before_ns, yes=args.yes)
        chosen = []
        for entry in found:
            runs = tuple(r for r in entry.runs if _wanted(r, args, since_ns))
            if runs or (not entry.runs and not any((args.scenario, args.engine, args.model, args.state))):
                chosen.append(replace(entry, runs=runs))
        return _list(chosen, args.limit, as_json=args.json, where=runs_dir, any_at_all=bool(found))
    except StoreError as e:
        print(f"loadgen runs: {clean(e, 1000)}", file=sys.stderr)
        return exitcodes.FAILED


def _wanted(run: Listed, args: argparse.Namespace, since_ns: int | None) -> bool:
    models = [str(e.get("model") or "").lower() for e in run.engines]
    return (
        (args.scenario is None or run.scenario == args.scenario)
        and (args.engine is None or any(e.get("name") == args.engine for e in run.engines))
        and (args.model is None or any(args.model.lower() in m for m in models))
        and (args.state is None or run.state == args.state)
        and (since_ns is None or run.start_ns >= since_ns)
    )


def _list(chosen: Sequence[Entry], limit: int, *, as_json: bool, where: Path, any_at_all: bool) -> int:
    from loadgen.report.listing import print_entries, to_rows

    shown = chosen[:limit] if limit else chosen
    if as_json:
        print(json.dumps([row for entry in shown for row in to_rows(entry)], indent=2), flush=True)
        return exitcodes.OK
    if not chosen:
        print("no run is like that" if any_at_all else f"there are no runs in {clean(where)} yet")
        return exitcodes.OK
    print_entries(shown)
    if left := len(chosen) - len(shown):
        print(f"and {left:,} older: --limit 0 lists all")
    return exitcodes.OK


def _prune(wanted: Sequence[Entry], keep: int | None, before_ns: int | None, *, yes: bool) -> int:
    from loadgen.report.listing import size
    from loadgen.store.prune import doomed, remove

    going, spared = doomed(wanted, keep=keep, before_ns=before_ns)
    for sentence in spared:
        print(clean(sentence, 300))
    if not going:
        print("nothing to remove")
        return exitcodes.OK
    sizes = [entry.size() for entry in going]
    for entry, n in zip(going, sizes, strict=True):
        what = f"suite of {plural(len(entry.runs), 'run')}" if entry.suite else entry.runs[0].state
        print(f"  {clean(entry.name):45} {what:15} {size(n):>9}")
    question = f"remove {_runs(len(going))} ({size(sum(sizes))})?"
    if not yes and not _agreed(question):
        print("nothing was removed", file=sys.stderr)
        return exitcodes.FAILED
    removed = 0
    for entry in going:
        try:
            remove(entry)
            removed += 1
        except StoreError as e:
            print(f"loadgen runs: {clean(e, 1000)}", file=sys.stderr)
    print(f"removed {_runs(removed)}")
    return exitcodes.OK if removed == len(going) else exitcodes.FAILED


def _runs(n: int) -> str:
    return "1 run or suite" if n == 1 else f"{n:,} runs and suites"


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigError(f"{question} Nobody is there to answer: add --yes")
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _when_ns(text: str | None, flag: str) -> int | None:
    """A wall time: so long ago, or a date in local time."""
    if text is None:
        return None
    if age := _AGE.fullmatch(text.strip()):
        return time.time_ns() - int(float(age[1]) * _SECONDS[age[2]] * 1e9)
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1e9)
    except (ValueError, OverflowError):
        raise ConfigError(f"{flag} {clean(text, 40)!r} is neither like 7d nor like 2026-11-30") from None


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
