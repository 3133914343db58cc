"""short_answers: did the engines generate what they were asked for?"""

from __future__ import annotations

from loadgen.report.plain import percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_SHARE = 0.01


def check(run: Evidence) -> list[Finding]:
    """A short answer ends early, so e2e and concurrency look better by it: suspect from 1 % on."""
    out = []
    for name, _, counts in run.with_counts():
        if counts["short_answers"]:
            share = counts["short_answers"] / max(counts["ok"], 1)
            level = Level.SUSPECT if share >= SUSPECT_SHARE else Level.VALID
            evidence = (
                f"{name}: {plural(counts['short_answers'], 'answer')} of {counts['ok']:,} shorter than "
                f"asked for ({percent(share)})"
            )
            advice = "see that the server heeds ignore_eos and that prompt and answer fit its context"
            out.append(Finding("short_answers", level, evidence, advice))
    return out
