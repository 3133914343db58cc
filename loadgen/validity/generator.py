"""generator: had the load generator enough processor left?"""

from __future__ import annotations

from loadgen.report.plain import number
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

SUSPECT_CPU_PERCENT = 80.0
VOID_CPU_PERCENT = 97.0
SUSPECT_LAG_MS = 100.0
SUSPECT_READ_MS = 20.0


def check(run: Evidence) -> list[Finding]:
    """Suspect with 80 % of a core used on average while measuring, void with 97 %: then the load, and not the
    engine, is what was measured. Suspect as well if timers were 100 ms late in one second of twenty, or,
    where the kernel gave no times, bytes waited 20 ms to be read: that is an error of the times themselves.
    """
    out = []
    load = run.generator
    advice = "use a faster or less busy machine, or fewer users"
    if load is not None and load.cpu_percent is not None and load.cpu_percent >= SUSPECT_CPU_PERCENT:
        level = Level.VOID if load.cpu_percent >= VOID_CPU_PERCENT else Level.SUSPECT
        evidence = (
            f"the generator used {load.cpu_percent:.0f} % of a core on average over {load.seconds:,} "
            "measured seconds"
        )
        out.append(Finding("generator", level, evidence, advice))
    if load is not None and load.loop_lag_ms_p95 is not None and load.loop_lag_ms_p95 >= SUSPECT_LAG_MS:
        evidence = (
            f"in one measured second of twenty the generator was {number(load.loop_lag_ms_p95)} ms late "
            "or more"
        )
        out.append(Finding("generator", Level.SUSPECT, evidence, advice))
    for name, figures, counts in run.with_counts():
        waited = (figures.get("read_lag_ms") or {}).get("p95")
        stamped = set(counts["clock"]) <= {"kernel"}
        if not stamped and waited is not None and waited >= SUSPECT_READ_MS:
            evidence = (
                f"{name}: without kernel stamps, and one request in twenty had bytes that waited "
                f"{number(waited)} ms or more"
            )
            out.append(Finding("generator", Level.SUSPECT, evidence, advice))
    return out
