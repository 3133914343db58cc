"""open_loop: did the generator keep the schedule, and the server up with it?"""

from __future__ import annotations

import math

from loadgen.metrics.send_lag import LATE_MS
from loadgen.report.plain import number, percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_LATE = 0.01
VOID_LATE = 0.1
KEPT_UP = 0.95
_SIGMAS = 3.0
MORE = "give the generator more processor, or more processes (--processes)"


def check(run: Evidence) -> list[Finding]:
    """Void if a request was dropped, or one in ten was late: that load was not the one asked for. Suspect if
    one in a hundred was late. That a server serves fewer requests than come is a result, and a note."""
    out = []
    for name, figures, _ in run.with_counts():
        offered = figures.get("open_loop")
        if not offered:
            continue
        if offered["dropped"]:
            evidence = (
                f"{name}: {plural(offered['dropped'], 'request')} of {offered['scheduled']:,} were never "
                f"sent, since {offered['peak_in_flight']:,} were in flight already"
            )
            advice = "take a lower rate, or a higher --max-in-flight if generator and server can bear it"
            out.append(Finding("open_loop", Level.VOID, evidence, advice))
        if offered["late_share"] > SUSPECT_LATE:
            level = Level.VOID if offered["late_share"] > VOID_LATE else Level.SUSPECT
            evidence = (
                f"{name}: {percent(offered['late_share'])} of the requests were sent more than "
                f"{LATE_MS:g} ms late"
            )
            out.append(Finding("open_loop", level, evidence, MORE))
        served, rate = figures["window"]["requests_per_s"] or 0.0, offered["offered_per_s"]
        seconds = figures["window"]["seconds"]
        if rate and seconds > 0 and served < KEPT_UP * rate - _SIGMAS * math.sqrt(rate / seconds):
            evidence = (
                f"{name}: {number(rate)} requests came each second and {number(served)} were served, so it "
                "does not keep up: its latency grows for as long as the load goes on"
            )
            out.append(Finding("open_loop", Level.VALID, evidence, "compare engines at rates that all serve"))
    return out
