"""The result of a run on the terminal, when it is over."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from loadgen import stdio
from loadgen.screen import Console
from loadgen.store import StoreError
from loadgen.users.run import SUITE_ENV, Run

if TYPE_CHECKING:
    from loadgen.report.summary import RunSummary

log = logging.getLogger("loadgen")


def show_result(run: Run) -> Sequence[RunSummary]:
    """Print the summary and where the run is. A summary that fails does not take the run with it: then there
    is none."""
    summaries: list[RunSummary] = []
    try:
        from loadgen.report.summary import summarise, write_summary
        from loadgen.report.terminal import print_summaries

        summaries = summarise(run.dir)
        try:
            print_summaries(summaries, Console())
        except OSError as e:  # nobody reads on, or standard output is a file on a full disk
            if isinstance(e, BrokenPipeError):
                stdio.nobody_reads()
            log.error("the result cannot be printed (%s)", e.strerror or e)
        write_summary(run.dir)
        if find_spec("pyarrow") is not None:
            # In a process of its own: pyarrow would more than double the memory of a load generator.
            command = [sys.executable, "-m", "loadgen.store.parquet", str(run.dir.path)]
            subprocess.run(command, check=False)
    except StoreError as e:  # a full disk, a directory that is gone
        log.error("%s; when that is mended: loadgen summary %s --write", e, run.dir.path)
    except Exception:
        log.exception("the summary could not be made; try `loadgen summary %s`", run.dir.path)
    if SUITE_ENV not in os.environ:  # a suite names its own directory when all its runs are over
        print(f"run directory: {run.dir.path}", file=sys.stderr)
    return summaries
