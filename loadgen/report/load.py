"""A run directory's journals, events and manifest, read into columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from loadgen.metrics.columns import ColumnBuilder, Columns
from loadgen.metrics.energy import EngineEnergy, engine_energy
from loadgen.metrics.gputrack import GpuTrack, gpu_tracks
from loadgen.metrics.levels import Stretch, find_stretches
from loadgen.metrics.server_concurrency import Gauge
from loadgen.metrics.turns import Turn, find_turns
from loadgen.report.parquet import read_parquet
from loadgen.store import Damage, Manifest, RunDir
from loadgen.store.journal import read_once
from loadgen.store.jsonl import read_rows
from loadgen.store.manifest import COMPLETE, FAILED, INTERRUPTED, RUNNING


@dataclass
class EngineData:
    """What one engine's part of a run left. `examples` has one error text for each kind of failure; `gauge`
    is what the server said of its requests, None if nobody asked it; `energy` is what its GPUs used, None if
    nobody watched them; `stretches` are the times with a known number of users, where that varied."""

    columns: Columns
    turns: list[Turn]
    examples: dict[str, str]
    gauge: Gauge | None = None
    energy: EngineEnergy | None = None
    stretches: list[Stretch] = field(default_factory=list)


@dataclass
class RunData:
    """A run as read. `state` is complete, failed or interrupted; `events` are those of events.jsonl;
    `gpus` are the samples of gpu.jsonl; `warnings` tell what could not be read."""

    name: str
    scenario: str
    state: str
    manifest: Manifest | None
    engines: dict[str, EngineData]
    warnings: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    gpus: list[GpuTrack] = field(default_factory=list)

    def of_class(self, traffic_class: str) -> RunData:
        """The requests of one traffic class alone, as a run of its own: turns are the same, energy is not
        known by class."""
        engines = {}
        for name, engine in self.engines.items():
            columns = engine.columns.picked(engine.columns.word["traffic_class"] == traffic_class)
            engines[name] = EngineData(columns, engine.turns, engine.examples, stretches=engine.stretches)
        return replace(self, scenario=f"{self.scenario}: {traffic_class}", engines=engines)


def load_run(run: RunDir) -> RunData:
    """Read a run, as much of it as there is. Raises StoreError for a damaged manifest or unreadable files;
    a missing manifest, missing events, torn and damaged lines are told in `warnings`.
    """
    warnings: list[str] = []
    manifest = None
    if run.manifest_path.exists():
        manifest = run.manifest()
    else:
        warnings.append("there is no manifest.json: what the run was made with is not known")
    events, event_warnings = _read_events(run)
    warnings += event_warnings
    found, examples, journal_warnings, scenario = _read_requests(run)
    warnings += journal_warnings
    gauges, gauge_warnings = _read_gauges(run)
    warnings += gauge_warnings

    state = manifest.state if manifest else COMPLETE
    if state == RUNNING or manifest is None:
        state = COMPLETE if any(e.get("kind") == "run_end" for e in events) else INTERRUPTED
    settings = manifest.settings if manifest else {}
    names = [str(e.get("name")) for e in manifest.engines] if manifest else []
    engines = {}
    for name in dict.fromkeys([*names, *found]):
        columns = found.pop(name, None) or ColumnBuilder().build()
        turn_requests = settings.get("turn_requests")
        turns = find_turns(
            name,
            events,
            columns,
            turn_requests=turn_requests if isinstance(turn_requests, int) else None,
            run_complete=state not in (INTERRUPTED, FAILED),
        )
        engines[name] = EngineData(columns, turns, examples.get(name, {}), gauges.get(name))
        engines[name].stretches = find_stretches(name, events, turns)
    tracks: list[GpuTrack] = []
    if run.gpu_path.exists():
        damage = Damage()
        tracks = gpu_tracks(read_rows(run.gpu_path, damage))
        warnings += damage.sentences()
        for name, used in engine_energy(tracks, {name: e.turns for name, e in engines.items()}).items():
            engines[name].energy = used
    scenario = (manifest.scenario if manifest else "") or scenario or run.name.partition("_")[2] or run.name
    return RunData(run.name, scenario, state, manifest, engines, warnings, events, tracks)


def _read_events(run: RunDir) -> tuple[list[dict[str, Any]], list[str]]:
    if not run.events_path.exists():
        return [], ["there is no events.jsonl: turns begin and end with their requests"]
    damage = Damage()
    return list(read_rows(run.events_path, damage)), damage.sentences()


def _read_gauges(run: RunDir) -> tuple[dict[str, Gauge], list[str]]:
    path = run.engine_path
    if not path.exists():
        return {}, []
    damage = Damage()
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(path, damage):
        if isinstance(engine := row.get("engine"), str) and "running" in row:
            rows.setdefault(engine, []).append({k: row.get(k) for k in ("t_ns", "running", "waiting")})
    return {name: Gauge.of(some) for name, some in rows.items()}, damage.sentences()


def _read_requests(run: RunDir) -> tuple[dict[str, Columns], dict[str, dict[str, str]], list[str], str]:
    """Columns by engine; also an error text for each engine and kind, warnings, and the records' scenario."""
    if (stored := read_parquet(run)) is not None:
        return stored.columns, stored.examples, stored.warnings, stored.scenario
    builders: dict[str, ColumnBuilder] = {}
    examples: dict[str, dict[str, str]] = {}
    damages: list[Damage] = []
    scenario = ""
    paths = run.journals()
    for row, damage in read_once(paths, damages):
        engine = row.get("engine") or ""
        try:
            if not isinstance(engine, str):
                raise TypeError("engine is not a text")
            if engine not in builders:
                builders[engine] = ColumnBuilder()
            builders[engine].add(row)
        except (TypeError, ValueError, OverflowError):
            damage.add(damage.line)
            continue
        if not scenario and isinstance(row.get("scenario"), str):
            scenario = row["scenario"]
        if row.get("error_text"):
            kind = str(row.get("error") or "unknown")
            examples.setdefault(engine, {}).setdefault(kind, str(row["error_text"]))
    warnings = [sentence for damage in damages for sentence in damage.sentences()]
    if not paths:
        warnings.append("there is no requests.jsonl: no request was recorded")
    columns = {name: builders.pop(name).build() for name, b in list(builders.items()) if len(b)}
    return columns, examples, warnings, scenario
