"""gpu_throttling: did something hold the GPUs back while they were measured?"""

from __future__ import annotations

from loadgen.report.plain import number, percent, plural
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level
from loadgen.validity.gpu_rows import GpuLoad

ADVICE = {
    "sw_thermal_slowdown": "cool it better, or lower its power limit until it stays cool",
    "hw_thermal_slowdown": "cool it better: the card protected itself",
    "hw_slowdown": "look for heat, power supply and cabling: the card protected itself",
    "hw_power_brake_slowdown": "look at the power supply: the system asked the card to brake",
}
POWER_CAP = "sw_power_cap"
VOID_SHARE = 0.01


def check(run: Evidence) -> list[Finding]:
    """Thermal slow-down, hardware slow-down and power brake in 1 % of the samples under load: void, in fewer:
    suspect. The software power cap is the normal state of a loaded card: a note, with the clock it cost."""
    out = []
    for gpu in run.gpus:
        for reason, advice in ADVICE.items():
            if reason in gpu.reasons:
                level = (
                    Level.VOID if gpu.reasons[reason].samples / gpu.samples >= VOID_SHARE else Level.SUSPECT
                )
                out.append(Finding("gpu_throttling", level, _evidence(gpu, reason), advice))
        if POWER_CAP in gpu.reasons:
            out.append(Finding("gpu_throttling", Level.VALID, _evidence(gpu, POWER_CAP)))
    return out


def _evidence(gpu: GpuLoad, reason: str) -> str:
    held = gpu.reasons[reason]
    share = held.samples / gpu.samples
    whose = ", ".join(f"{engine} {n:,}" for engine, n in sorted(held.engines.items()))
    text = (
        f"{gpu.name}: {reason} in {held.samples:,} of {plural(gpu.samples, 'sample')} under load "
        f"({percent(share)}; {whose})"
    )
    if held.clock_mhz is not None and gpu.max_sm_clock_mhz:
        lost = max(0.0, 1 - held.clock_mhz / gpu.max_sm_clock_mhz)
        clocks = f"{number(held.clock_mhz)} of {number(gpu.max_sm_clock_mhz)} MHz"
        text += f", SM clock {clocks} ({percent(lost)} lost)"
    return text
