"""The result of a run on the terminal, when it is over."""

from __future__ import annotations

import logging
import sys

from rich.console import Console

from loadgen.users.run import Run

log = logging.getLogger("loadgen")


def show_result(run: Run) -> None:
    """Print the summary and where the run is. A summary that fails does not take the run with it."""
    try:
        from loadgen.report.summary import summarise, write_summary
        from loadgen.report.terminal import print_summaries

        print_summaries(summarise(run.dir), Console())
        write_summary(run.dir)
    except Exception:
        log.exception("the summary could not be made; try `loadgen summary %s`", run.dir.path)
    print(f"run directory: {run.dir.path}", file=sys.stderr)
