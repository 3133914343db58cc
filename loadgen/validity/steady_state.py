"""steady_state: was the engine warm, and did it stay as it was?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.report.plain import percent
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

EFFECT = 0.05  # as large as the margin of a claim: less changes no answer
ERRORS = 3.0
TREND = 0.05
CHANCE = 0.01
WITHIN = 0.1

_TITLES = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "throughput_tokens_per_s": "throughput"}


def check(run: Evidence) -> list[Finding]:
    """Suspect where the beginning changes a mean by 5 % or more and is 3 standard errors apart from the rest;
    where the turns' means have a trend (chance below 1 %) of 5 % or more from the first to the last; where
    TPOT rises or falls inside turns by more than 10 %, its whole interval beyond that (not asked of a file's
    prompts, whose lengths may have an order). Definitions: metrics/steady.py."""
    out = []
    for name, figures, _ in run.with_counts():
        steady = figures.get("steady") or {}
        sentences = [*_settling(steady), *_turns(steady)]
        if not run.settings.get("prompt_file"):
            sentences += _within(steady)
        out += [
            Finding("steady_state", Level.SUSPECT, f"{name}: {evidence}", advice)
            for evidence, advice in sentences
        ]
    return out


def _settling(steady: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for figure, found in steady.get("settling", {}).items():
        if found["requests"] and abs(found["effect"]) >= EFFECT and found["errors"] >= ERRORS:
            yield (
                f"{_TITLES[figure]} of the first {found['requests']:,} of {found['of']:,} requests is unlike "
                f"the rest and makes the mean {_change(found['effect'])}",
                "warm up for longer (--warmup steady)",
            )


def _turns(steady: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for figure, found in steady.get("turns", {}).items():
        if abs(found["change"]) >= TREND and found["p"] < CHANCE:
            yield (
                f"{_TITLES[figure]} drifts from turn to turn: {_change(found['change'])} by the last of "
                f"{found['turns']} turns (chance {percent(found['p'])})",
                "look for heat, for other work on the machine and for caches that fill, and repeat",
            )


def _within(steady: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for figure, found in steady.get("within", {}).items():
        if found["low"] > WITHIN or found["high"] < 1 / (1 + WITHIN) - 1:
            yield (
                f"{_TITLES[figure]} drifts inside turns: {_change(found['change'])} in the last third of a "
                f"turn, over {found['turns']} turns",
                "look for heat and for KV caches that fill; longer cool-downs or turns may help",
            )


def _change(share: float) -> str:
    return f"{percent(abs(share))} {'higher' if share > 0 else 'lower'}"
