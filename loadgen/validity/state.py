"""state: did the run come to its end, with at least one whole turn of each engine?"""

from __future__ import annotations

from loadgen.store.manifest import FAILED, INTERRUPTED
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """Void without a complete turn of every engine; suspect if the run failed; an end before the last block
    (a time limit, Ctrl-C) is a note, since the blocks before it are whole."""
    out = []
    for name, figures in run.engines.items():
        if not figures["window"]["turns_complete"]:
            what = "no request was measured" if not figures["counts"]["requests"] else "no turn is complete"
            out.append(Finding("state", Level.VOID, f"{name}: {what}", "let the run go on to its end"))
    if run.state == FAILED:
        out.append(
            Finding("state", Level.SUSPECT, "the run ended with an error", "see its notes and its log")
        )
    elif run.state == INTERRUPTED:
        out.append(Finding("state", Level.VALID, "the run ended before its last block"))
    return out
