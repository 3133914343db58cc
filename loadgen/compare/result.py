"""The result of a comparison: what `loadgen compare` and `loadgen report` show, and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from loadgen.compare.ratios import CONFIDENCE, MARGIN
from loadgen.validity.finding import Finding, Level, Validity

BLOCKS = "blocks"
BY_PROMPT = "blocks by prompt"
UNPAIRED = "unpaired"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of an engine against the baseline's.

    `statistic` is mean, p50, p95 or p99 of a figure that every request (or gap) has, `value` of one that a
    turn has. `value` and `baseline_value` are over all complete turns, as `loadgen summary` prints them; they
    come from `samples` and `baseline_samples` requests (or gaps). `ratio` is engine / baseline with its
    interval by itself, `low` to `high`; None where there is none.

    `answer` is "better", "no difference" or "not decidable", `better` the better engine of the first, and
    `needed` the number of blocks that might decide the last. `p` is the smallest error probability at which
    this row would have an answer, `p_adjusted` the same among all claims of its family (`headline` or not);
    the answer goes by the latter where `adjusted`. `rough`: too few samples for this percentile.
    """

    figure: str
    title: str
    unit: str
    statistic: str
    higher_is_better: bool
    engine: str
    baseline: str
    value: float | None
    baseline_value: float | None
    samples: int
    baseline_samples: int
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    method: str
    headline: bool
    adjusted: bool
    p: float | None
    p_adjusted: float | None
    rough: bool
    answer: str
    better: str | None
    needed: int | None
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class RunComparison:
    """Engines of one run, or of two runs made apart. `engines` begins with the baseline.

    An engine that both of two runs have is called `NAME (A)` in the first and `NAME (B)` in the second.
    `pairing` says what was paired, `cannot_exclude` what that leaves open; `notes` are sentences on how to
    read the rows. `infos` are the manifests' facts
    of each engine, by its name here; `seen` is what the caller's `look` saw of it (not in the JSON). `parts`
    is room for memory, energy, cost, slo and verdict.
    """

    runs: list[str]
    scenario: str
    baseline: str
    engines: list[str]
    rows: list[Row] = field(default_factory=list)
    validity: Validity = field(default_factory=lambda: Validity(Level.VALID, ()))
    margin: float = MARGIN
    confidence: float = CONFIDENCE
    simulated: list[str] = field(default_factory=list)
    pairing: str = BLOCKS
    cannot_exclude: list[str] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    def row(
        self, engine: str, figure: str, statistic: str | None = None, *, baseline: str | None = None
    ) -> Row | None:
        """The row of a figure; without a `statistic` its mean, or its only value, and without a `baseline`
        the first that the engine is compared with."""
        wanted = ("mean", "value") if statistic is None else (statistic,)
        for row in self.rows:
            same = (row.engine, row.figure) == (engine, figure) and row.statistic in wanted
            if same and baseline in (None, row.baseline):
                return row
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a number that does not exist is null."""
        return {
            "runs": self.runs,
            "scenario": self.scenario,
            "margin": self.margin,
            "confidence": self.confidence,
            "baseline": self.baseline,
            "engines": self.engines,
            "simulated": self.simulated,
            "pairing": self.pairing,
            "cannot_exclude": self.cannot_exclude,
            "differences": self.differences,
            "notes": self.notes,
            "validity": {
                "level": self.validity.level.word,
                "findings": [finding_dict(f) for f in self.validity.findings],
            },
            "rows": [row.to_dict() for row in self.rows],
            **self.parts,
        }


def finding_dict(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level.word,
        "evidence": finding.evidence,
        "advice": finding.advice,
    }


def worst(parts: Sequence[tuple[str, Validity]]) -> Validity:
    """The validity of runs that are compared: the worst level; findings say which run where there are two."""
    if len(parts) == 1:
        return parts[0][1]
    findings: list[Finding] = []
    for label, validity in parts:
        findings += (Finding(f.check, f.level, f"{label}: {f.evidence}", f.advice) for f in validity.findings)
    findings.sort(key=lambda f: -f.level)
    return Validity(max((v.level for _, v in parts), default=Level.VALID), tuple(findings))
