"""gpu_sharing: did engines that were measured at the same time have a GPU each?"""

from __future__ import annotations

from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """With residency `parallel`: void if processes of two engines were seen on one GPU, a note if nobody saw
    whose processes are where. Engines that take turns may share one."""
    if run.settings.get("residency") != "parallel" or len(run.engines) < 2:
        return []
    out = []
    for gpu in run.gpus:
        both = sorted(gpu.engines & run.engines.keys())
        if len(both) > 1:
            evidence = f"{gpu.name}: {' and '.join(both)} were measured on it at the same time"
            advice = "give each a GPU of its own, or let them take turns (--residency shared)"
            out.append(Finding("gpu_sharing", Level.VOID, evidence, advice))
    seen = set().union(*(gpu.engines for gpu in run.gpus))
    real = [name for name, figures in run.engines.items() if not figures.get("simulated")]
    if not out and real and not set(real) <= seen:
        evidence = "engines were measured at the same time, and nobody saw which GPUs they used"
        out.append(Finding("gpu_sharing", Level.VALID, evidence))
    return out
