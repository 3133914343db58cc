"""workers: did all processes that sent stay to the end?"""

from __future__ import annotations

from loadgen.report.plain import plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """A worker that was lost left a turn incomplete, and the others had its users from then on: turns before
    and after were not sent by the same processes."""
    if not run.workers_lost:
        return []
    names = ", ".join(run.workers_lost)
    evidence = f"{plural(len(run.workers_lost), 'worker')} lost in the middle of the run ({names})"
    return [Finding("workers", Level.SUSPECT, evidence, "find out why in its log, and repeat")]
