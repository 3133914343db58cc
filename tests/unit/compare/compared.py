"""Comparisons made by hand: only what matters is said."""

from __future__ import annotations

from typing import Any

from loadgen.compare.facts import EngineFacts
from loadgen.compare.figures import FIGURES
from loadgen.compare.result import Row, RunComparison
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.validity.finding import Finding, Level, Validity

FIGURE = {f.name: f for f in FIGURES}
TTFT, TPOT, DECODE = "ttft_ms", "tpot_ms", "decode_tokens_per_s"
E2E, THROUGHPUT = "e2e_ms", "throughput_tokens_per_s"


def row(figure: str, ratio: float, answer: str = BETTER, **more: Any) -> Row:
    """b against a (the baseline), whose value is 100; the interval is 2 % to each side."""
    of = FIGURE[figure]
    engine, baseline = more.pop("engine", "b"), more.pop("baseline", "a")
    ahead = engine if (ratio > 1) == of.higher_is_better else baseline
    values: dict[str, Any] = {
        "figure": figure,
        "title": of.title,
        "unit": of.unit,
        "statistic": "value" if figure == THROUGHPUT else "mean",
        "higher_is_better": of.higher_is_better,
        "engine": engine,
        "baseline": baseline,
        "value": 100 * ratio,
        "baseline_value": 100.0,
        "samples": 384,
        "baseline_samples": 384,
        "ratio": ratio,
        "low": ratio * 0.98,
        "high": ratio * 1.02,
        "blocks": 6,
        "method": "paired blocks, t",
        "headline": True,
        "adjusted": True,
        "p": 0.001,
        "p_adjusted": 0.005,
        "rough": False,
        "answer": answer,
        "better": ahead if answer == BETTER else None,
        "needed": 20 if answer == NOT_DECIDABLE else None,
        "sentence": "",
    }
    return Row(**(values | more))


def comparison(*rows: Row, scenario: str = "single_user", **more: Any) -> RunComparison:
    engines = list(dict.fromkeys(e for r in rows for e in (r.baseline, r.engine))) or ["a", "b"]
    values: dict[str, Any] = {"runs": ["run"], "baseline": engines[0], "engines": engines, "rows": list(rows)}
    return RunComparison(scenario=scenario, **(values | more))


def seen(users: int, prompt_tokens: float, **more: Any) -> dict[str, EngineFacts]:
    facts = EngineFacts(users=users, prompt_tokens=prompt_tokens, **more)
    return {"a": facts, "b": facts}


def level(of: Level) -> Validity:
    return Validity(of, (Finding("state", of, "a: no turn is complete", "let the run go on"),) if of else ())


SINGLE = comparison(row(TTFT, 0.5), row(DECODE, 1.4), seen=seen(1, 50))
EQUAL = comparison(row(TTFT, 1.01, NO_DIFFERENCE), row(DECODE, 1.0, NO_DIFFERENCE), seen=seen(1, 50))
