"""comparable: do the engines do the same work, so that they can be compared at all?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from loadgen.report.plain import clean, number
from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level
from loadgen.validity.modelname import base_model
from loadgen.workload.classes import WARM_TURNS

TOKENS = 2  # the beginning-of-text token and the like
SHARE = 0.01


def check(run: Evidence) -> list[Finding]:
    """Suspect where the models' names differ by more than their quantisation, or vocabularies in size; where
    the same prompts are more tokens to one engine than to another, by 1 % and 2 tokens: then a token is
    another thing to each. A note where they were given contexts of different lengths: memory can't be
    compared then."""
    infos = {str(i.get("name")): i for i in run.infos if str(i.get("name")) in run.engines}
    out = _different(
        {name: base_model(i) for name, i in infos.items()},
        Level.SUSPECT,
        "the base models differ",
        "compare engines with one base model, or read it as a comparison of models",
    )
    vocabularies = {name: (i.get("facts") or {}).get("n_vocab") for name, i in infos.items()}
    out += _different(
        vocabularies,
        Level.SUSPECT,
        "the vocabularies differ in size",
        "tokens per second can't be compared: compare times of whole answers",
    )
    out += _prompts(run)
    contexts = {name: i.get("context") for name, i in infos.items()}
    out += _different(contexts, Level.VALID, "the context lengths differ", "don't compare their memory")
    return out


def _different(values: dict[str, Any], level: Level, what: str, advice: str) -> list[Finding]:
    known = {name: v for name, v in values.items() if isinstance(v, (str, int)) and v}
    if len(set(known.values())) < 2:
        return []
    each = ", ".join(
        f"{name} {clean(v, 60) if isinstance(v, str) else f'{v:,}'}" for name, v in known.items()
    )
    return [Finding("comparable", level, f"{what}: {each}", advice)]


def _prompts(run: Evidence) -> list[Finding]:
    """Mean prompt lengths by the servers' own count, pair by pair; of several traffic classes each by itself,
    as failures change their shares, and not of the later turns of conversations, which hold the engine's own
    answers."""
    kinds = dict.fromkeys(name for f in run.engines.values() for name in f.get("classes", {}))
    for kind in [k for k in kinds if k != WARM_TURNS] or [None]:
        if found := _prompts_of(run, kind):
            return found
    return []


def _prompts_of(run: Evidence, kind: str | None) -> list[Finding]:
    means = {}
    for name, figures, counts in run.with_counts():
        counts = counts if kind is None else figures.get("classes", {}).get(kind, {}).get("counts", {})
        if counts.get("prompt_tokens") and counts["ok"]:
            means[name] = counts["prompt_tokens"] / counts["ok"]
    for (a, x), (b, y) in combinations(means.items(), 2):
        if abs(x - y) > max(TOKENS, SHARE * min(x, y)):
            evidence = f"the same prompts are {number(x)} tokens to {a} and {number(y)} to {b}"
            advice = (
                "their tokenizers or chat templates differ: compare times of whole answers, not of tokens"
            )
            return [Finding("comparable", Level.SUSPECT, evidence, advice)]
    return []
