"""littles_law: do concurrency, rate and time in flight fit together?"""

from __future__ import annotations

from loadgen.report.plain import percent
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_RESIDUAL = 0.001
VOID_RESIDUAL = 0.05


def check(run: Evidence) -> list[Finding]:
    """Little's law holds for every turn from empty to empty, to the rounding: a residual of 0.1 % says that
    our own books are wrong, one of 5 % that nothing can be read from them."""
    out = []
    for name, figures, _ in run.with_counts():
        residual = figures["window"]["littles_residual"] or 0.0
        if residual > SUSPECT_RESIDUAL:
            level = Level.VOID if residual > VOID_RESIDUAL else Level.SUSPECT
            evidence = f"{name}: Little's residual is {percent(residual)}"
            out.append(
                Finding(
                    "littles_law", level, evidence, "distrust throughput and concurrency, and repeat the run"
                )
            )
    return out
