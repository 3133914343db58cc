"""clock: was the wall clock set, and did the kernel tell the times?"""

from __future__ import annotations

from loadgen.report.plain import plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """No duration counts by the wall clock, but kernel stamps are placed by it: suspect where it was set.
    Times without kernel stamps are a note."""
    out = []
    for name, figures, counts in run.with_counts():
        stepped = any(t["clock_stepped"] for t in figures["window"]["turns"])
        if counts["clock_steps"] or stepped:
            during = (
                f"while {plural(counts['clock_steps'], 'request')} ran"
                if counts["clock_steps"]
                else "during a turn"
            )
            evidence = f"{name}: the wall clock was set {during}"
            out.append(
                Finding(
                    "clock", Level.SUSPECT, evidence, "let the clock settle (NTP) before a run, and repeat it"
                )
            )
        read = sum(n for kind, n in counts["clock"].items() if kind != "kernel")
        if read:
            out.append(
                Finding(
                    "clock",
                    Level.VALID,
                    f"{name}: {plural(read, 'request')} timed without kernel stamps",
                    "a busy generator makes such times late",
                )
            )
    return out
