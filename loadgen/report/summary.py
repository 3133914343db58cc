"""The summary of a run: figures of every engine, in the shape that `loadgen summary --json` prints.

    {scenario: {engine: {
        "ttft_ms": {"n": 128, "mean": 181.2, "p50": 180.9, "p95": 186.0, "p99": 190.3, "p99_rough": true},
        ... one for each metric of loadgen.metrics ...
        "counts": {...}, "window": {...}
    }}}

Figures come from the requests of complete turns, warm-up left out, failed ones never among the percentiles.
Where an engine has no complete turn they come from what there is, and its object has `"incomplete": true`.
Where requests were of several traffic classes, `"classes"` has the same figures of each: its `window` is that
of its own requests in the whole time of the turns, so that the throughputs of all classes add up.
Where the number of users varied, `"levels"` has figures for each (loadgen.metrics.levels), and `"knee"` the
users beyond which throughput hardly rises, if that was seen; the other figures mix all of them. With an SLO
each level says whether it is met, and `"within_slo"` up to how many users.
`"simulated": true` marks a simulated engine, `"interrupted": true` a run that has no end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from loadgen.config import ConfigError
from loadgen.metrics import METRICS
from loadgen.metrics.columns import Bools, Columns
from loadgen.metrics.counts import count
from loadgen.metrics.levels import find_knee, levels
from loadgen.metrics.open_loop import open_loop
from loadgen.metrics.percentiles import describe
from loadgen.metrics.server_concurrency import server_concurrency
from loadgen.metrics.steady import steadiness
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import Totals, measure, measure_turn, served_window, total
from loadgen.record import OK, WARMUP
from loadgen.report.load import EngineData, RunData, load_run
from loadgen.store import RunDir, Suite
from loadgen.store.manifest import INTERRUPTED, write_atomically

if TYPE_CHECKING:
    from loadgen.validity import Validity


@dataclass
class RunSummary:
    """One run, summarised. `engines` is the JSON part; `examples` an error text by engine and kind;
    `validity` None until somebody has judged it."""

    name: str
    scenario: str
    state: str
    engines: dict[str, dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    infos: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    examples: dict[str, dict[str, str]] = field(default_factory=dict)
    validity: Validity | None = None

    @property
    def simulated(self) -> list[str]:
        """Names of the simulated engines."""
        return [name for name, figures in self.engines.items() if figures.get("simulated")]


def summarise_run(run: RunDir) -> RunSummary:
    """Read, summarise and judge one run. Raises StoreError."""
    from loadgen.report.judge import judge  # it looks at summaries

    data = load_run(run)
    summary = summarise_data(data)
    summary.validity = judge(run, data, summary)
    return summary


def summarise_data(data: RunData) -> RunSummary:
    """Summarise a run that has been read, without a judgement."""
    manifest = data.manifest
    infos = manifest.engines if manifest else []
    simulated = {str(i.get("name")) for i in infos if i.get("simulated") is True}
    engines = {
        name: summarise_engine(engine, simulated=name in simulated, state=data.state)
        for name, engine in data.engines.items()
    }
    for name, figures in engines.items():
        _judge_levels(data.engines[name], figures, manifest.settings.get("slo") if manifest else None)
    return RunSummary(
        name=data.name,
        scenario=data.scenario,
        state=data.state,
        engines=engines,
        settings=manifest.settings if manifest else {},
        infos=infos,
        notes=manifest.notes if manifest else [],
        warnings=data.warnings,
        examples={name: engine.examples for name, engine in data.engines.items()},
    )


def _judge_levels(engine: EngineData, figures: dict[str, Any], slo: Any) -> None:
    """Where users varied and the run has an SLO: which levels keep it."""
    if not figures.get("levels") or not isinstance(slo, str):
        return
    from loadgen.slo.levels import edge, judge_levels  # it looks at runs
    from loadgen.slo.objectives import parse_slo

    try:
        asked = parse_slo([slo])
    except ConfigError:  # of another version's manifest
        return
    turns = {t.turn for t in engine.turns if t.complete} or {t.turn for t in engine.turns}
    stretches = [s for s in engine.stretches if s.turn in turns]
    for level, answer in zip(figures["levels"], judge_levels(asked, engine, stretches), strict=True):
        level["slo"] = answer
    figures["within_slo"] = {"slo": slo, **edge(figures["levels"])}


def summarise(target: RunDir | Suite) -> list[RunSummary]:
    """The runs of a suite in order, or the one run. Raises StoreError."""
    return [summarise_run(run) for run in (target.runs() if isinstance(target, Suite) else [target])]


def to_json(summaries: list[RunSummary]) -> dict[str, dict[str, Any]]:
    """{scenario: {engine: figures}}; a second run of a scenario in one suite is called `scenario (2)`."""
    out: dict[str, dict[str, Any]] = {}
    for summary in summaries:
        key, n = summary.scenario, 2
        while key in out:
            key, n = f"{summary.scenario} ({n})", n + 1
        out[key] = summary.engines
    return out


def compute(target: RunDir | Suite) -> dict[str, dict[str, Any]]:
    """The JSON summary of a run or suite. Raises StoreError."""
    return to_json(summarise(target))


def write_summary(target: RunDir | Suite) -> dict[str, dict[str, Any]]:
    """Compute the JSON summary and write it to summary.json in the run's or suite's directory."""
    result = compute(target)
    write_atomically(target.path / "summary.json", json.dumps(result, indent=2) + "\n")
    return result


def summarise_engine(
    engine: EngineData, *, simulated: bool = False, state: str = "complete"
) -> dict[str, Any]:
    """The figures of one engine: metrics, `counts` and `window` by name."""
    columns = engine.columns
    measured = columns.word["phase"] != WARMUP
    complete = [t for t in engine.turns if t.complete]
    used = complete or engine.turns
    rows = measured & np.isin(columns.whole["turn"], [t.turn for t in used])
    ok = rows & (columns.word["outcome"] == OK)

    figures: dict[str, Any] = _metrics(columns, ok)
    figures["counts"] = {
        **count(columns, rows),
        "warmup_requests": int((~measured).sum()),
        "left_out_requests": int((measured & ~rows).sum()),
    }
    parts = [(turn, measure_turn(columns, turn)) for turn in engine.turns]
    figures["window"] = {
        **total(sums for turn, sums in parts if turn in used).figures(),
        "turns_complete": len(complete),
        "turns_incomplete": len(engine.turns) - len(complete),
        "turns": [
            {
                "turn": turn.turn,
                "block": turn.block,
                "complete": turn.complete,
                "derived": turn.derived,
                "clock_stepped": turn.clock_stepped,
                **sums.figures(),
            }
            for turn, sums in parts
        ],
    }
    if stretches := [s for s in engine.stretches if s.turn in {turn.turn for turn in used}]:
        figures["levels"] = levels(columns, rows, stretches)
        if knee := find_knee(figures["levels"]):
            figures["knee"] = knee
    whole = [(turn, sums) for turn, sums in parts if turn.complete and not stretches]
    if classes := traffic_classes(columns, rows):
        figures["classes"] = {name: _of_class(columns, rows, used, name) for name in classes}
    elif steady := steadiness(columns, whole):
        figures["steady"] = steady
    if engine.energy is not None:
        figures["gpu"] = engine.energy.figures([(turn, sums) for turn, sums in parts if turn in used])
    if (offered := open_loop(columns, used)) is not None:
        figures["open_loop"] = offered
    windows = [served_window(columns, turn) for turn in used]
    seen = server_concurrency(engine.gauge, windows) if engine.gauge else None
    if seen is not None:
        figures["window"]["server_concurrency"] = seen.mean
        figures["window"]["server_concurrency_contradicts"] = seen.contradicts(
            figures["window"]["concurrency"] or 0.0
        )
    if not complete:
        figures["incomplete"] = True
    if state == INTERRUPTED:
        figures["interrupted"] = True
    if simulated:
        figures["simulated"] = True
    return figures


def traffic_classes(columns: Columns, rows: Bools) -> list[str]:
    """The traffic classes of these rows, as they were first seen."""
    names = columns.word["traffic_class"][rows]
    return [name for name in dict.fromkeys(names) if name is not None]


def classes(engines: dict[str, dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """{traffic class: {engine: its figures}}; engines without a request of a class are not there."""
    names = dict.fromkeys(name for e in engines.values() for name in e.get("classes", {}))
    return {n: {e: f["classes"][n] for e, f in engines.items() if n in f.get("classes", {})} for n in names}


def _metrics(columns: Columns, ok: Bools) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for metric in METRICS:
        stats = describe(*metric.counted(columns, ok))
        if stats["n"] or not metric.optional:
            figures[metric.name] = stats
    return figures


def _of_class(columns: Columns, rows: Bools, turns: list[Turn], name: str) -> dict[str, Any]:
    mine = rows & (columns.word["traffic_class"] == name)
    sums = []
    for turn in turns:
        picked = columns.of_turn(turn.turn)
        sums.append(measure(columns, picked[mine[picked]], turn))
    return {
        **_metrics(columns, mine & (columns.word["outcome"] == OK)),
        "counts": count(columns, mine),
        "window": {**total(sums).figures(), "turns_complete": len(turns), "turns_incomplete": 0},
    }


__all__ = [
    "RunData",
    "RunSummary",
    "Totals",
    "classes",
    "compute",
    "summarise",
    "summarise_data",
    "summarise_run",
    "to_json",
    "write_summary",
]
