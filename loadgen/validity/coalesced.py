"""coalesced: were events read together, so that their times are only bounds?"""

from __future__ import annotations

from loadgen.report.plain import percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

TTFT_SHARE = 0.05
EVENT_SHARE = 0.02


def check(run: Evidence) -> list[Finding]:
    """Suspect if 5 % of the requests have an inexact TTFT, or 2 % of all events, beside one a request, an
    inexact time. That one is the last, which servers send in one breath with the end of the stream."""
    out = []
    for name, _, counts in run.with_counts():
        advice = (
            "unless the server sends several events at a time, give the generator more processor or less load"
        )
        ttft = counts["inexact_ttft"] / max(counts["ok"], 1)
        if ttft >= TTFT_SHARE:
            evidence = (
                f"{name}: TTFT of {plural(counts['inexact_ttft'], 'request')} ({percent(ttft)}) is only a "
                "bound, as the first tokens were read together with later ones"
            )
            out.append(Finding("coalesced", Level.SUSPECT, evidence, advice))
        beyond = max(0, counts["coalesced_events"] - counts["inexact_requests"])
        share = beyond / max(counts["events"], 1)
        if share >= EVENT_SHARE:
            evidence = f"{name}: {percent(share)} of the events were read together with later ones"
            out.append(Finding("coalesced", Level.SUSPECT, evidence, advice))
    return out
