"""All that the report shows of one run, small enough to hold many of them: its columns are let go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loadgen.compare.facts import EngineFacts, engine_facts
from loadgen.compare.outcome import Outcome
from loadgen.compare.part import Reader
from loadgen.compare.result import RunComparison
from loadgen.metrics import METRICS, Metric
from loadgen.record import OK, WARMUP
from loadgen.report.html.failures import Failures, failures
from loadgen.report.html.samples import Distribution, of_counts
from loadgen.report.html.timeline import Course, course
from loadgen.report.load import EngineData, RunData
from loadgen.report.offered import is_open, rate_of
from loadgen.report.summary import RunSummary, classes
from loadgen.sinks.derive import start_of
from loadgen.slo.check import CheckedRun, check_data
from loadgen.slo.objectives import Slo
from loadgen.store import RunDir
from loadgen.sweep.names import RATE, USERS, load_words

DRAWN = ("ttft_ms", "tpot_ms", "e2e_ms")
GAPS = "chunk_gap_ms"


@dataclass
class Digest:
    """One run. `curves[metric][engine]`; `manifest` as its file has it, empty where there is none;
    `comparison` has one engine or none where nothing could be compared, `classes` are those of its traffic
    classes, `outcomes` are the verdicts;
    `checked` is what was asked of the engines, None if nothing; `checked_classes` the same of each traffic
    class, by its name."""

    summary: RunSummary
    start_ns: int
    course: Course
    curves: dict[str, dict[str, Distribution]]
    failures: list[Failures]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    path: Path = field(default_factory=Path)
    comparison: RunComparison | None = None
    classes: list[RunComparison] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    checked: CheckedRun | None = None
    checked_classes: dict[str, CheckedRun] = field(default_factory=dict)

    @property
    def load(self) -> float | None:
        """Its users; of an open loop its rate, in requests a second."""
        if is_open(self.summary.settings):
            return rate_of(self.summary.settings)
        users = self.summary.settings.get("users")
        return users if isinstance(users, int) else None

    @property
    def load_words(self) -> str:
        """`16 users`, `8 requests/s`."""
        return load_words(self.load or 0, RATE if is_open(self.summary.settings) else USERS)


class DigestReader(Reader):
    """Reads runs for their comparison, each once, and makes a digest of each by the way."""

    def __init__(self, slo: Slo | None = None) -> None:
        super().__init__(self._look_at)
        self._slo = slo
        self._made: dict[Path, Digest] = {}

    def digest(self, run: RunDir) -> Digest:
        """Raises StoreError."""
        self(run)
        return self._made[run.path.resolve()]

    def _look_at(self, run: RunDir, data: RunData, summary: RunSummary) -> dict[str, EngineFacts]:
        made = self._made[run.path.resolve()] = _of_columns(run, data, summary)
        if self._slo is not None:
            made.checked = check_data(data, summary, self._slo)
            made.checked_classes = {
                name: check_data(data.of_class(name), summary, self._slo) for name in classes(summary.engines)
            }
        return engine_facts(run, data, summary)


def _of_columns(run: RunDir, data: RunData, summary: RunSummary) -> Digest:
    start_ns = start_of(data)
    counts = [e["counts"] for e in summary.engines.values()]
    doubtful = any(c["failed"] or c["cancelled"] or c["left_out_requests"] for c in counts)
    return Digest(
        summary,
        start_ns,
        course({name: e for name, e in data.engines.items() if e.turns}, data.gpus, start_ns),
        _curves(data),
        failures(run) if doubtful else [],
        manifest=data.manifest.to_dict() if data.manifest else {},
        path=run.path.resolve(),
    )


def _curves(data: RunData) -> dict[str, dict[str, Distribution]]:
    metrics = {m.name: m for m in METRICS}
    out: dict[str, dict[str, Distribution]] = {}
    for name, engine in data.engines.items():
        rows = _rows(engine)
        for metric in (*DRAWN, GAPS):
            if len(some := _curve(metrics[metric], engine, rows)):
                out.setdefault(metric, {})[name] = some
    return out


def _curve(metric: Metric, engine: EngineData, rows: Any) -> Distribution:
    return of_counts(*metric.counted(engine.columns, rows))


def _rows(engine: EngineData) -> Any:
    """The successful requests that the summary counts."""
    columns = engine.columns
    used = [t for t in engine.turns if t.complete] or engine.turns
    counted = np.isin(columns.whole["turn"], [t.turn for t in used])
    return counted & (columns.word["phase"] != WARMUP) & (columns.word["outcome"] == OK)
