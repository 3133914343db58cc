"""A comparison with all that is known beside its rows: memory, energy, cost, verdicts, advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.compare.advice import Advice, advise
from loadgen.compare.cost import cost_ratio, engine_cost
from loadgen.compare.facts import EngineFacts, engine_facts
from loadgen.compare.outcome import Outcome, Overall, outcomes, overall
from loadgen.compare.ratios import MARGIN
from loadgen.compare.result import RunComparison
from loadgen.compare.runs import compare_target
from loadgen.compare.uses import use_of
from loadgen.plain import plural
from loadgen.report.load import RunData
from loadgen.report.summary import RunSummary
from loadgen.store import RunDir, Suite

THROUGHPUT = "throughput_tokens_per_s"


@dataclass
class Assessment:
    """One comparison a scenario, its verdict in `parts`, and what follows from them all."""

    comparisons: list[RunComparison]
    outcomes: list[Outcome]
    overall: list[Overall]
    advice: list[Advice]

    def to_dict(self) -> dict[str, Any]:
        """{"comparisons": [...], "overall": {"verdicts": [...], "advice": [...]}}"""
        return {
            "comparisons": [c.to_dict() for c in self.comparisons],
            "overall": {
                "verdicts": [o.to_dict() for o in self.overall],
                "advice": [a.to_dict() for a in self.advice],
            },
        }


def assess(
    a: RunDir | Suite,
    b: RunDir | Suite | None = None,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    margin: float = MARGIN,
    gpu_hour: float | None = None,
    gpus: Mapping[str, Sequence[int]] | None = None,
    logs: Mapping[str, Sequence[Path]] | None = None,
) -> Assessment:
    """Compare and judge. `gpu_hour` is the price of a GPU hour; `gpus` and `logs` are as in `engine_facts`.

    Of two runs, the first `logs` and `gpus` of an engine are those of the first run that has it, the second
    those of the other; a single number of GPUs is that of both. `all_pairs` is as in `compare_target`. Raises
    StoreError.
    """
    first_in: dict[str, bool] = {}

    def look(run: RunDir, data: RunData, summary: RunSummary) -> dict[str, EngineFacts]:
        after = b is not None and (run.path == b.path or b.path in run.path.parents) and run.path != a.path
        again = {name for name in summary.engines if first_in.setdefault(name, after) != after}
        own_logs = {
            name: given[name in again] for name, given in (logs or {}).items() if len(given) > (name in again)
        }
        own_gpus = {name: given[min(name in again, len(given) - 1)] for name, given in (gpus or {}).items()}
        return engine_facts(run, data, summary, logs=own_logs, gpus=own_gpus)

    found = compare_target(a, b, baseline=baseline, all_pairs=all_pairs, margin=margin, look=look)
    return judged(found, gpu_hour, margin)


def judged(comparisons: list[RunComparison], gpu_hour: float | None, margin: float = MARGIN) -> Assessment:
    """Fill in the comparisons' parts, from what was seen of their engines, and draw the conclusions."""
    found: list[Outcome] = []
    _tell_apart(comparisons)
    for comparison in comparisons:
        facts = {name: f for name, f in comparison.seen.items() if isinstance(f, EngineFacts)}
        parts: dict[str, dict[str, Any]] = {
            "memory": {name: dict(f.memory) for name, f in facts.items() if f.memory},
            "energy": {name: dict(f.energy) for name, f in facts.items() if f.energy},
            "cost": _costs(comparison, facts, gpu_hour),
        }
        _memory_ratios(comparison, parts["memory"])
        comparison.parts.update({name: part for name, part in parts.items() if part})
        one = facts.get(comparison.baseline, EngineFacts())
        use = use_of(one.users, one.prompt_tokens, open_loop=one.open_loop)
        load = use.load(one.users, one.prompt_tokens, one.rate)
        own = outcomes(comparison, use, ", ".join(filter(None, (one.traffic_class, load))))
        comparison.parts["verdict"] = {"pairs": [o.to_dict() for o in own]}
        found += own
    return Assessment(comparisons, found, overall(found), advise(comparisons, found, margin))


def _tell_apart(comparisons: list[RunComparison]) -> None:
    """Runs of one scenario (a sweep's steps) get names of their own, by their users, else by number."""
    names = Counter(c.scenario for c in comparisons)
    users = {
        id(c): next((f.users for f in c.seen.values() if isinstance(f, EngineFacts)), None)
        for c in comparisons
    }
    for scenario in [name for name, n in names.items() if n > 1]:
        same = [c for c in comparisons if c.scenario == scenario]
        by_users = len({users[id(c)] for c in same} - {None}) == len(same)
        for n, comparison in enumerate(same, 1):
            comparison.scenario += (
                f" ({plural(users[id(comparison)] or 0, 'user')})" if by_users else f" ({n})"
            )


def _memory_ratios(comparison: RunComparison, memory: Mapping[str, dict[str, Any]]) -> None:
    """The least that each engine would need, over its baseline's."""
    for engine, baseline in dict.fromkeys((row.engine, row.baseline) for row in comparison.rows):
        mine, theirs = (memory.get(e, {}).get("least_needed", {}).get("bytes") for e in (engine, baseline))
        if mine and theirs:
            memory[engine].setdefault("against_baseline", {"baseline": baseline, "ratio": mine / theirs})


def _costs(
    comparison: RunComparison, facts: Mapping[str, EngineFacts], gpu_hour: float | None
) -> dict[str, dict[str, Any]]:
    costs = {
        name: cost
        for name, f in facts.items()
        if (cost := engine_cost(f.throughput, f.gpus, f.gpus_source, gpu_hour))
    }
    for name, cost in costs.items():
        row = comparison.row(name, THROUGHPUT)
        if row is not None and row.baseline in costs:
            against = cost_ratio(cost["gpus"], costs[row.baseline]["gpus"], row.ratio, row.low, row.high)
            if against:
                cost["against_baseline"] = {"baseline": row.baseline, **against}
    return costs
