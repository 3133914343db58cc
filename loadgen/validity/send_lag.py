"""send_lag: did the generator send its requests when it wanted to?"""

from __future__ import annotations

from loadgen.report.plain import number
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_MS = 20.0


def check(run: Evidence) -> list[Finding]:
    """Of a closed loop, where few requests have an appointed time: suspect if one of them in twenty was sent
    20 ms late or more, since the load was not the one asked for."""
    out = []
    for name, figures, _ in run.with_counts():
        if figures.get("open_loop"):
            continue
        lag = (figures.get("send_lag_ms") or {}).get("p95")
        if lag is not None and lag >= SUSPECT_MS:
            out.append(
                Finding(
                    "send_lag",
                    Level.SUSPECT,
                    f"{name}: one request in twenty was sent {number(lag)} ms late or more",
                    "give the generator more processor",
                )
            )
    return out
