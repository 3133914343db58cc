"""cut_turns: does a turn that was cut short hide that an engine had become slow?"""

from __future__ import annotations

from loadgen.report.plain import number
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

LONGER = 1.2  # times the longest complete turn: beyond what turns of equal work differ by


def check(run: Evidence) -> list[Finding]:
    """Suspect if it had already lasted longer than any complete turn of its engine. Only complete turns are
    in the figures, and a limit of time cuts the slow ones: what is left would be a selection."""
    out = []
    for name, figures in run.engines.items():
        turns = figures["window"]["turns"]
        whole = max((t.get("seconds") or 0.0 for t in turns if t["complete"]), default=0.0)
        cut = max((t.get("seconds") or 0.0 for t in turns if not t["complete"]), default=0.0)
        if whole > 0 and cut > LONGER * whole:
            evidence = (
                f"{name}: a turn that was cut short had already lasted {number(cut)} s, the longest complete "
                f"one {number(whole)} s: what slowed it is not in the figures"
            )
            advice = "see what the engine did then, and repeat without a limit that cuts turns"
            out.append(Finding("cut_turns", Level.SUSPECT, evidence, advice))
    return out
