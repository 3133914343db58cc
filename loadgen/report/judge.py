"""What the checks of loadgen/validity say of a run that has been read and summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.metrics.turns import Turn
from loadgen.report.load import RunData
from loadgen.report.summary import RunSummary
from loadgen.store import RunDir
from loadgen.store.events import WORKER_LOST, read_events
from loadgen.validity import Evidence, Validity, check_run, telemetry


def judge(run: RunDir, data: RunData, summary: RunSummary) -> Validity:
    """May this run be believed? Raises StoreError where its telemetry can't be read."""
    return judge_figures(
        run,
        {name: engine.turns for name, engine in data.engines.items()},
        summary.engines,
        state=summary.state,
        settings=summary.settings,
        notes=summary.notes,
        infos=summary.infos,
    )


def judge_figures(
    run: RunDir,
    turns: Mapping[str, Sequence[Turn]],
    engines: Mapping[str, Mapping[str, Any]],
    *,
    state: str,
    settings: Mapping[str, Any],
    notes: Sequence[str],
    infos: Sequence[Mapping[str, Any]] = (),
) -> Validity:
    """The same from figures as they are in the JSON summary. Raises StoreError."""
    generator, gpus = telemetry(run.path, turns)
    return check_run(
        Evidence(
            state=state,
            engines=engines,
            settings=settings,
            notes=notes,
            generator=generator,
            gpus=gpus,
            infos=infos,
            workers_lost=_workers_lost(run),
        )
    )


def _workers_lost(run: RunDir) -> list[str]:
    if not run.events_path.exists():
        return []
    return [str(e.get("worker")) for e in read_events(run.events_path) if e.get("kind") == WORKER_LOST]
