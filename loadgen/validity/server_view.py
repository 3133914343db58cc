"""server_concurrency: did the server have the requests that we sent, and no others?"""

from __future__ import annotations

from loadgen.report.plain import number
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """Suspect where the server's own gauges contradict our concurrency (metrics/server_concurrency.py)."""
    out = []
    for name, figures, _ in run.with_counts():
        window = figures["window"]
        if window.get("server_concurrency_contradicts"):
            theirs, ours = window["server_concurrency"], window["concurrency"] or 0.0
            evidence = (
                f"{name}: the server counted {number(theirs)} requests where {number(ours)} were in flight "
                "from here"
            )
            advice = (
                "see that nobody else uses it"
                if theirs > ours
                else "look for what holds requests back before it, or for another server behind the address"
            )
            out.append(Finding("server_concurrency", Level.SUSPECT, evidence, advice))
    return out
