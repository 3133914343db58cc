"""The run_summary points of a run: one for each engine and figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadgen.metrics import METRICS
from loadgen.report.load import RunData
from loadgen.report.summary import RunSummary

STATISTICS = ("mean", "p50", "p95", "p99")
WINDOW = {
    "throughput_tokens_per_s": True,
    "requests_per_s": True,
    "concurrency": None,
}
FAILURES = "failures"


def summary_rows(data: RunData, summary: RunSummary) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(engine, metric, fields). What could not be measured has no point."""
    for name, figures in summary.engines.items():
        for metric, fields in _values(figures):
            fields["simulated"] = float(bool(figures.get("simulated")))
            yield name, metric, fields


def _values(figures: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for metric in METRICS:
        stats = figures.get(metric.name)
        if stats and stats["n"]:
            fields = {"value": stats["p50"], "n": float(stats["n"])}
            yield metric.name, fields | {k: stats[k] for k in STATISTICS}
    requests = float(figures["counts"]["requests"])
    for name in WINDOW:
        if figures["window"].get(name) is not None:
            yield name, {"value": float(figures["window"][name]), "n": requests}
    if requests:
        yield FAILURES, {"value": float(figures["counts"]["failed"]), "n": requests}
