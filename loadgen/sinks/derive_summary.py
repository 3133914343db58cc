"""The run_summary points of a run: one for each engine and figure, with its ratio to the other engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadgen.compare import FIGURES, Comparison, Side, compare_engines
from loadgen.compare.engines import MEAN, VALUE
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
    comparisons = _comparisons(data, summary, validity)
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
                fields |= _ratio(comparison)
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


def _comparisons(data: RunData, summary: RunSummary, validity: Validity) -> dict[tuple[str, str], Comparison]:
    """By engine and figure: every engine against the first, and the first against the second."""
    found: dict[tuple[str, str], Comparison] = {}
    sides = [Side.of(name, engine) for name, engine in data.engines.items() if name in summary.engines]
    for comparison in compare_engines(
        sides,
        void=validity.level == Level.VOID,
        simulated=summary.simulated,
    ):
        if comparison.statistic in (MEAN, VALUE):
            name = comparison.figure.name
            found[comparison.engine, name] = comparison
            found.setdefault((comparison.baseline, name), comparison.inverse())
    return found


def _ratio(comparison: Comparison) -> dict[str, Any]:
    ratio = comparison.ratio
    return {
        "baseline": comparison.baseline,
        "ratio": ratio.ratio,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "blocks": float(ratio.blocks),
        "better": comparison.better,
        "verdict": comparison.sentence,
    }
