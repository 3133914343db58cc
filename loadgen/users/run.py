"""Run: one run's directory, open for writing, and everything that is recorded in it."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from loadgen.config import Settings
from loadgen.record import RequestRecord
from loadgen.store import EventsWriter, JournalWriter, Manifest, RunDir, StoreError, Suite
from loadgen.store.manifest import FAILED
from loadgen.users.lane import Lane, cache_note, warm_note

log = logging.getLogger("loadgen")

SUITE_ENV = "LOADGEN_SUITE_DIR"  # set by `loadgen run reference` for the runs of its suite


class Run:
    """Creates the run directory; the run is over with `close`. Raises StoreError on creation only.

    `problem` is the sentence of a disk that cannot be written, None while all is well.
    """

    def __init__(self, settings: Settings, lanes: Sequence[Lane], *, clock: str) -> None:
        suite_path = os.environ.get(SUITE_ENV)
        suite = Suite.open(Path(suite_path)) if suite_path else None
        self.settings = settings
        self.lanes = list(lanes)
        self.dir = RunDir.create(settings.runs_dir, settings.scenario, suite)
        self.name = self.dir.name
        infos = [lane.info.to_dict() for lane in lanes if lane.info]
        self.manifest = Manifest.new(
            self.name, settings, infos, clock=clock, suite=suite.name if suite else None
        )
        self.manifest.write(self.dir.manifest_path)
        self.journal = JournalWriter(self.dir.journal_path)
        self.events = EventsWriter(self.dir.events_path)
        self.events.append("run_start", scenario=settings.scenario)
        self.closed = False
        self.sequence = 0

    @property
    def problem(self) -> str | None:
        return self.journal.problem or self.events.problem

    def next_sequence(self) -> int:
        self.sequence += 1
        return self.sequence

    def write(self, record: RequestRecord) -> None:
        if record.error_text:  # some servers repeat the key that they refuse
            record.error_text = self.manifest.blank(record.error_text)
        if not self.closed:
            self.journal.append(record)

    def note(self, text: str) -> None:
        """A sentence that belongs to the result: to the manifest, the events and the person at once."""
        text = self.manifest.blank(text)
        if text not in self.manifest.notes:
            self.manifest.note(text)
            self.events.append("note", text=text)
            log.warning("%s", text)

    def update_manifest(self) -> None:
        """Write what has been learned since: engines, prompts. A full disk is the journal's to tell."""
        self.manifest.engines = [lane.info.to_dict() for lane in self.lanes if lane.info]
        self._write_manifest()

    def close(self, state: str) -> None:
        """Write the end of everything. Never raises; may be called twice."""
        if self.closed:
            return
        for lane in self.lanes:
            note = warm_note if self.settings.exchanges > 1 else cache_note
            if self.settings.salt == "on" and (text := note(lane.name, lane.cache)):
                self.note(text)
        self.events.append("run_end", state=state)
        self.closed = True
        self.journal.close()
        self.events.close()
        if self.problem:
            self.manifest.note(self.problem)
            state = FAILED
        self.manifest.engines = [lane.info.to_dict() for lane in self.lanes if lane.info]
        try:
            self.manifest.finish(self.dir.manifest_path, state)
        except StoreError as e:
            log.error("%s", e)

    def _write_manifest(self) -> None:
        try:
            self.manifest.write(self.dir.manifest_path)
        except StoreError as e:
            log.error("%s", e)
