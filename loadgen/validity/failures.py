"""failures: how many requests failed?"""

from __future__ import annotations

from loadgen.report.plain import percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_SHARE = 0.01
VOID_SHARE = 0.1


def check(run: Evidence) -> list[Finding]:
    """Failed requests are in no percentile, so what is left is a selection: the quicker the failing, the
    better the rest may look. Suspect from 1 % on, void from 10 %, a note below."""
    out = []
    for name, _, counts in run.with_counts():
        if failed := counts["failed"]:
            share = failed / counts["requests"]
            level = (
                Level.VOID
                if share >= VOID_SHARE
                else Level.SUSPECT
                if share >= SUSPECT_SHARE
                else Level.VALID
            )
            evidence = (
                f"{name}: {plural(failed, 'request')} of {counts['requests']:,} failed ({percent(share)})"
            )
            out.append(
                Finding(
                    "failures", level, evidence, "find out why (the kinds are in the summary), and repeat"
                )
            )
    return out
