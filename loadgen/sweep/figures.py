"""The figures of one step, engine by engine, as they stand in sweep.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from loadgen.report.judge import judge as judge_run
from loadgen.report.load import RunData, load_run
from loadgen.report.summary import summarise_data
from loadgen.store import RunDir
from loadgen.sweep.point import UNDECIDED, Point
from loadgen.validity import Level, Validity
from loadgen.validity.failures import VOID_SHARE

QUANTILES = ("n", "p50", "p95", "p99")
METRICS = ("ttft_ms", "tpot_ms", "e2e_ms")
WINDOW = ("throughput_tokens_per_s", "requests_per_s", "concurrency")


@dataclass(frozen=True, slots=True)
class SloAnswer:
    """`answer` is met, not met or not decidable; `sentences` say why, one a limit."""

    answer: str
    sentences: tuple[str, ...] = ()


# What an SLO says of an engine, by its figures in the JSON summary and the run they come from.
Judge = Callable[[RunData, str, Mapping[str, Any]], SloAnswer]


def step_figures(run: RunDir, judge: Judge | None = None) -> dict[str, dict[str, Any]]:
    """By engine: throughput, rates, percentiles of TTFT, TPOT and end-to-end time, each turn's throughput,
    failures, validity with the findings that speak against it, and what the SLO says. Raises StoreError where
    the run can't be read.

    Each engine is judged by itself: that one fails under a load voids nothing of the other's.
    """
    data = load_run(run)
    summary = summarise_data(data)
    servers = {str(info.get("name")): _server(info) for info in summary.infos}
    out = {}
    for name, figures in summary.engines.items():
        validity = judge_run(run, data, replace(summary, engines={name: figures}))
        out[name] = {**engine_figures(figures, validity), "server": servers.get(name)}
        if judge is not None:
            slo = judge(data, name, figures)
            void = out[name]["validity"] == Level.VOID.word
            out[name]["slo"] = UNDECIDED if void else slo.answer
            out[name]["slo_sentences"] = list(slo.sentences)
    return out


def _server(info: Mapping[str, Any]) -> str:
    return " ".join(str(info[key]) for key in ("server", "version", "model") if info.get(key))


def engine_figures(figures: Mapping[str, Any], validity: Validity) -> dict[str, Any]:
    """The part of an engine's summary that a sweep shows. What was not measured is None, never 0."""
    counts, window = figures["counts"], figures["window"]
    turns = [t["throughput_tokens_per_s"] for t in window["turns"] if t["complete"]]
    return {
        **{key: window[key] for key in WINDOW},
        "turns_tokens_per_s": turns,
        **{name: {q: figures[name][q] for q in QUANTILES} for name in METRICS},
        "requests": counts["requests"],
        "failed": counts["failed"],
        "failed_by_kind": counts["failed_by_kind"],
        "validity": validity.level.word,
        "findings": [
            {"check": f.check, "level": f.level.word, "evidence": f.evidence, "advice": f.advice}
            for f in validity.findings
            if f.level > Level.VALID
        ],
        **({"simulated": True} if figures.get("simulated") else {}),
    }


def point_of(load: float, figures: Mapping[str, Any]) -> Point:
    """What the planner needs of an engine's figures at a load."""
    requests, failed = figures["requests"], figures["failed"]
    return Point(
        load,
        figures["throughput_tokens_per_s"],
        slo=figures.get("slo"),
        believed=figures["validity"] != Level.VOID.word,
        failing=bool(requests) and failed / requests >= VOID_SHARE,
    )
