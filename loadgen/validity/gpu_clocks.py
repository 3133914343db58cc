"""gpu_clocks: did a GPU run slower than it can, whatever it gave as a reason?"""

from __future__ import annotations

import numpy as np

from loadgen.report.plain import number, percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level
from loadgen.validity.gpu_rows import GpuLoad

SLOW = 0.9
SUSPECT_SHARE = 0.05
VOID_SHARE = 0.01
SETTING = "void_below_sm_clock_mhz"
LEAST = 10


def check(run: Evidence) -> list[Finding]:
    """By the card's own measure: suspect if in 5 % of the busy samples its SM clock was below 90 % of the
    highest it had in this run, and it gave no reason for that (a power cap is one, and gpu_throttling tells
    of it). By a rule: with the setting `void_below_sm_clock_mhz`, void if 1 % of the busy samples had a lower
    clock, suspect if any had."""
    out = []
    limit = run.settings.get(SETTING)
    for gpu in run.gpus:
        n = len(gpu.clocks_mhz)
        if not n:
            continue
        clocks = np.asarray(gpu.clocks_mhz)
        if isinstance(limit, (int, float)):
            out += _by_rule(gpu, clocks, float(limit))
        best = float(clocks.max())
        slow = (clocks < SLOW * best) & np.asarray(gpu.free, dtype=np.bool_)
        share = float(slow.mean())
        if n >= LEAST and share >= SUSPECT_SHARE:
            clock = f"{number(float(clocks[slow].mean()))} of the {number(best)} MHz"
            evidence = (
                f"{gpu.name}: SM clock {clock} that it reached, in {percent(share)} of "
                f"{plural(n, 'sample')} under load, and no reason given"
            )
            advice = "look for limits set on the clocks, for heat and for power"
            out.append(Finding("gpu_clocks", Level.SUSPECT, evidence, advice))
    return out


def _by_rule(gpu: GpuLoad, clocks: np.ndarray, limit: float) -> list[Finding]:
    below = clocks < limit
    if not below.any():
        return []
    share = float(below.mean())
    evidence = (
        f"{gpu.name}: SM clock below {number(limit)} MHz in {percent(share)} of "
        f"{plural(len(clocks), 'sample')} under load, {number(float(clocks.min()))} MHz at the lowest"
    )
    level = Level.VOID if share >= VOID_SHARE else Level.SUSPECT
    return [Finding("gpu_clocks", level, evidence, f"cool the card, or change {SETTING}")]
