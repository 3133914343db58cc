"""samples: are there enough for the percentiles that are quoted?"""

from __future__ import annotations

from loadgen.report.plain import plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

LEAST = 20  # of fewer, the 95th percentile is the largest sample


def check(run: Evidence) -> list[Finding]:
    """Suspect below 20 successful requests, of which p95 is simply the slowest. p99 of fewer than 1,000 is
    marked wherever it stands."""
    out = []
    for name, _, counts in run.with_counts():
        if 0 < counts["ok"] < LEAST:
            evidence = f"{name}: {plural(counts['ok'], 'successful request')}, so p95 is the slowest of them"
            out.append(Finding("samples", Level.SUSPECT, evidence, "run more blocks or longer turns"))
    return out
