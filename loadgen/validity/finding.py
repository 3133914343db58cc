"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How far a result may be believed. A finding with level VALID is a note: nothing is wrong with it."""

    VALID = 0
    SUSPECT = 1
    VOID = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """`evidence` is what was seen, with its numbers; `advice` what to do about it. A clause each, without a
    full stop. Names in it come from the run's settings and servers: data, to be cleaned before printing."""

    check: str
    level: Level
    evidence: str
    advice: str = ""

    def sentence(self) -> str:
        return f"{self.evidence}; {self.advice}" if self.advice else self.evidence


@dataclass(frozen=True, slots=True)
class Validity:
    """The worst level of the findings, and the findings, worst first."""

    level: Level
    findings: tuple[Finding, ...]

    @property
    def reasons(self) -> list[str]:
        """What speaks against the result: none if it is valid."""
        return [f.sentence() for f in self.findings if f.level > Level.VALID]
