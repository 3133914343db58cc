"""May this run be believed? One check a file; each says what it saw and what to do about it."""

from __future__ import annotations

from collections.abc import Callable

from loadgen.validity import (
    blocks,
    cache,
    clock,
    coalesced,
    comparable,
    cut_turns,
    failures,
    generator,
    gpu_clocks,
    gpu_sharing,
    gpu_throttling,
    littles,
    open_loop,
    samples,
    send_lag,
    server_view,
    short_answers,
    simulated,
    state,
    steady_state,
    workers,
)
from loadgen.validity.evidence import Evidence, telemetry
from loadgen.validity.finding import Finding, Level, Validity

CHECKS: tuple[Callable[[Evidence], list[Finding]], ...] = (
    state.check,
    cut_turns.check,
    workers.check,
    gpu_throttling.check,
    gpu_clocks.check,
    gpu_sharing.check,
    failures.check,
    generator.check,
    littles.check,
    server_view.check,
    cache.check,
    short_answers.check,
    coalesced.check,
    send_lag.check,
    open_loop.check,
    clock.check,
    steady_state.check,
    comparable.check,
    samples.check,
    blocks.check,
    simulated.check,
)


def check_run(evidence: Evidence) -> Validity:
    """All checks of one run."""
    findings = [finding for check in CHECKS for finding in check(evidence)]
    findings.sort(key=lambda f: -f.level)  # a stable sort: as in CHECKS within a level
    return Validity(max((f.level for f in findings), default=Level.VALID), tuple(findings))


__all__ = ["CHECKS", "Evidence", "Finding", "Level", "Validity", "check_run", "telemetry"]
