"""simulated: are these real servers?"""

from __future__ import annotations

from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level


def check(run: Evidence) -> list[Finding]:
    """A note: the measurement may be perfect, it just says nothing of real servers."""
    names = [name for name, figures in run.engines.items() if figures.get("simulated")]
    if not names:
        return []
    return [
        Finding(
            "simulated", Level.VALID, f"simulated: {', '.join(names)}", "this says nothing about real servers"
        )
    ]
