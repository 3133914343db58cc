"""The run_summary points of a run: one for each engine and figure, with its ratio to the other engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadgen.compare import FIGURES, NOT_DECIDABLE, Comparison, compare_engines, engine_blocks
from loadgen.metrics import METRICS
from loadgen.report.load import RunData
from loadgen.report.plain import clean
from loadgen.report.summary import RunSummary
from loadgen.validity import Level, Validity

STATISTICS = ("mean", "p50", "p95", "p99")
# Figures that are one number, by their part of the JSON summary.
SINGLE = {"window": ("throughput_tokens_per_s", "requests_per_s", "concurrency")}
GPU = ("joules_per_output_token", "joules_per_request", "mean_power_w", "peak_memory_bytes")
FAILURES = "failures"
LONGEST_REASONS = 1000
DIRECTION = {figure.name: figure.higher_is_better for figure in FIGURES}


def summary_rows(
    data: RunData, summary: RunSummary, validity: Validity
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(engine, metric, fields). What could not be measured has no point; a void run decides nothing."""
    comparisons = compare_engines({name: engine_blocks(e) for name, e in data.engines.items()})
    believed = {
        "validity": validity.level.word,
        "validity_level": float(validity.level),
        "validity_reasons": clean(". ".join(validity.reasons), LONGEST_REASONS) or None,
    }
    for name, figures in summary.engines.items():
        for metric, fields in _values(figures):
            if metric in DIRECTION:
                fields["higher_is_better"] = float(DIRECTION[metric])
            if (comparison := comparisons.get((name, metric))) is not None:
                fields |= _ratio(comparison, summary, validity)
            fields["simulated"] = float(bool(figures.get("simulated")))
            yield name, metric, fields | believed


def _values(figures: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for metric in METRICS:
        stats = figures.get(metric.name)
        if stats and stats["n"]:
            fields = {"value": stats["p50"], "n": float(stats["n"])}
            yield metric.name, fields | {k: stats[k] for k in STATISTICS}
    requests = float(figures["counts"]["requests"])
    for part, names in SINGLE.items():
        for name in names:
            if (value := figures.get(part, {}).get(name)) is not None:
                yield name, {"value": float(value), "n": requests}
    for name in GPU:
        if (value := figures.get("gpu", {}).get(name)) is not None:
            yield name, {"value": float(value), "n": requests}
    if requests:
        yield FAILURES, {"value": float(figures["counts"]["failed"]), "n": requests}


def _ratio(comparison: Comparison, summary: RunSummary, validity: Validity) -> dict[str, Any]:
    ratio = comparison.ratio
    better, verdict = comparison.better, comparison.sentence
    if validity.level == Level.VOID:
        better, verdict = NOT_DECIDABLE, f"{NOT_DECIDABLE}: the run is void"
    if simulated := [n for n in (comparison.engine, comparison.baseline) if n in summary.simulated]:
        verdict += f" (simulated: {', '.join(simulated)})"
    return {
        "baseline": comparison.baseline,
        "ratio": ratio.ratio,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "blocks": float(ratio.blocks),
        "better": better,
        "verdict": verdict,
    }
