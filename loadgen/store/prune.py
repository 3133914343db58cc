"""Removing old runs, and never one that may still be going on."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Sequence

from loadgen.store.errors import StoreError
from loadgen.store.inventory import DAMAGED, KILLED, UNKNOWN, Entry
from loadgen.store.manifest import RUNNING
from loadgen.store.rundir import LATEST

# A directory made by loadgen: nobody else's is ever removed, whatever lies in it.
_OURS = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_.+")
# An engine may take as long to load its model between two runs of a suite.
SUITE_QUIET_S = 1800.0
KILLED_QUIET_S = 3600.0


def doomed(
    found: Sequence[Entry], *, keep: int | None = None, before_ns: int | None = None
) -> tuple[list[Entry], list[str]]:
    """Of entries, the newest first: those to remove, and a sentence of each that is spared all the same.

    `keep` spares so many of the newest; `before_ns` all that began then or later; both: what either spares.
    """
    out, spared = [], []
    for number, entry in enumerate(found):
        if (keep is not None and number < keep) or (before_ns is not None and entry.start_ns >= before_ns):
            continue
        if why := _spare(entry):
            spared.append(f"{entry.name} stays: {why}")
        else:
            out.append(entry)
    return out, spared


def _spare(entry: Entry) -> str:
    states = {r.state for r in entry.runs}
    if not _OURS.fullmatch(entry.name):
        return "its name is not one that loadgen gave"
    if RUNNING in states:
        return "it is running"
    if states & {DAMAGED, UNKNOWN}:
        return "it has no manifest that can be read, look at it first"
    if KILLED in states and entry.quiet_s() < KILLED_QUIET_S:
        return "it was killed within the last hour, or still goes on"
    if entry.suite and entry.quiet_s() < SUITE_QUIET_S:
        return "a suite that was written within the last half hour may go on"
    return ""


def remove(entry: Entry) -> None:
    """The directory with all that is in it. Raises StoreError where it can't be removed, or is being
    delivered to InfluxDB."""
    from loadgen.sinks.lock import delivery_lock

    with contextlib.ExitStack() as locks:
        for listed in entry.runs:
            locks.enter_context(delivery_lock(listed.run.path))
        try:
            shutil.rmtree(entry.path)
        except OSError as e:
            raise StoreError(f"{e.filename or entry.path} cannot be removed: {e.strerror or e}") from None
    link = entry.path.parent / LATEST
    with contextlib.suppress(OSError):
        if link.is_symlink() and not link.exists():
            link.unlink()  # `latest` is then the newest that is left
