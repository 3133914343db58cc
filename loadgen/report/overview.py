"""A run in a line or two: validity and headline figures, without reading a large journal again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.metrics.columns import ColumnBuilder
from loadgen.metrics.turns import find_turns
from loadgen.report.judge import judge_figures
from loadgen.report.summary import summarise_run
from loadgen.store import RunDir, StoreError, read_events
from loadgen.store.manifest import COMPLETE

SMALL_BYTES = 32 * 2**20  # a journal that is read in well under a second


@dataclass(frozen=True, slots=True)
class Overview:
    """`engines` are the figures of the JSON summary; `validity` is the level's word, None if not known."""

    validity: str | None = None
    engines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def overview(run: RunDir, *, going_on: bool = False) -> Overview:
    """From summary.json if it is there and no older than the journals; else from these, if they are small.
    What can't be read gives an empty overview; a run that goes on is not judged."""
    try:
        stored = _stored(run)
        if stored is not None:
            return stored
        if sum(p.stat().st_size for p in run.journals()) > SMALL_BYTES:
            return Overview()
        summary = summarise_run(run)
    except (StoreError, OSError):
        return Overview()
    judged = summary.validity is not None and summary.engines and not going_on
    level = summary.validity.level.word if judged and summary.validity else None
    return Overview(level, summary.engines)


def _stored(run: RunDir) -> Overview | None:
    journals = run.journals()
    try:
        written = run.summary_path.stat().st_mtime_ns
        if not journals or any(p.stat().st_mtime_ns > written for p in journals):
            return None
        (figures,) = json.loads(run.summary_path.read_text(encoding="utf-8")).values()
        manifest = run.manifest()
        events = list(read_events(run.events_path)) if run.events_path.exists() else []
        nothing = ColumnBuilder().build()
        turns = {
            name: find_turns(name, events, nothing, run_complete=manifest.state == COMPLETE)
            for name in figures
        }
        validity = judge_figures(
            run,
            turns,
            figures,
            state=manifest.state,
            settings=manifest.settings,
            notes=manifest.notes,
            infos=manifest.engines,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # another version's, or not ours
    return Overview(validity.level.word, figures)
