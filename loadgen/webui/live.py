"""Live: what the web page knows of the runs of this process."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import logging
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent

from loadgen.plain import clean
from loadgen.record import RequestRecord
from loadgen.store import StoreError
from loadgen.users.progress import time_left_s
from loadgen.webui.feed import KINDS, Feed
from loadgen.webui.figures import Figures, Row, final_rows
from loadgen.webui.history import History

if TYPE_CHECKING:
    from loadgen.report.summary import RunSummary
    from loadgen.users.director import Director
    from loadgen.users.run import Run

log = logging.getLogger("loadgen")

TICK_S = 1.0
NOTES = 20
KEPT = 100  # runs of which a report can be asked for


class Live:
    """The session says when a run begins (`opened`), when a request has ended (`record`), when the run is
    over (`closed`) and what came out (`concluded`). None of these raises, whatever goes wrong in here."""

    def __init__(self) -> None:
        self.epoch = secrets.token_hex(4)  # tells a client that this is another process than before
        self.history = History(KINDS)
        self.run: Run | None = None
        self.reports: dict[str, tuple[Path, str | None]] = {}  # runs that are over, and their SLO, by name
        self._director: Director | None = None
        self._figures: Figures | None = None
        self._feed: Feed | None = None
        self._rows: list[Row] = []
        self._about: dict[str, Any] = {}
        self._problem = ""
        self._greenlet: gevent.Greenlet | None = None

    # --- what the session says -----------------------------------------------------------------------------

    def opened(self, run: Run, director: Director | None) -> None:
        with _harmless():
            names = [lane.name for lane in run.lanes]
            slo = [run.settings.slo] if run.settings.slo else []
            self.run, self._director = run, director
            self._figures = Figures(run.settings.scenario, names, slo)
            self._feed = Feed(run.dir, self.history, self._figures)
            self._rows = []
            self._problem = ""
            self._about = {
                "name": run.name,
                "scenario": run.settings.scenario,
                "engines": names,
                "good_means": self._figures.good_means,
                "start": time.time(),
            }
            self.history.marks.add(
                self.history.next(), "run", time.time(), end=True, text=run.settings.scenario
            )
            self._greenlet = gevent.spawn(self._main)

    def record(self, record: RequestRecord) -> None:
        if self._feed is not None:
            with _harmless():
                self._feed.record(record)

    def closed(self, state: str) -> None:
        run, self.run = self.run, None
        if run is None:
            return
        with _harmless():
            if self._greenlet is not None:
                self._greenlet.kill()
            self._tick(run)
            self._rows = [{**row, "in_flight": 0} for row in self._live_rows(run)]
            self.history.marks.end_all(self.history.next(), time.time())
            self._about.update(state=state, end=time.time(), notes=_notes(run))
            self.reports[run.name] = run.dir.path, run.settings.slo
            while len(self.reports) > KEPT:
                self.reports.pop(next(iter(self.reports)))
        self._feed = self._director = None

    def concluded(self, summaries: Sequence[RunSummary]) -> None:
        """The summary of the run that was closed last."""
        with _harmless():
            for summary in summaries:
                if summary.name == self._about.get("name") and self.run is None:
                    self._rows = final_rows(summary, self._rows)

    def refused(self, sentence: str) -> None:
        """A run could not begin, or not go on."""
        self._problem = sentence

    # --- what pages ask ------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """A row an engine of the run that goes on, or of the last one."""
        return self._live_rows(self.run) if self.run is not None else self._rows

    def state(self) -> dict[str, Any]:
        """Which run this is, and how far."""
        about = dict(self._about)
        if self.run is not None:
            about.update(state="running", stage=self._stage(), notes=_notes(self.run))
        elif about:
            about["report"] = about["name"] in self.reports
        if self._problem:
            about["problem"] = clean(self._problem, 400)
        return about

    def data(self, cursor: int, epoch: str, seen: float | None) -> dict[str, Any]:
        """All that a client lacks; see `History.since`."""
        found = self.history.since(cursor if epoch == self.epoch else 0, seen)
        return {"epoch": self.epoch, "now": time.time(), "run": self.state(), "rows": self.rows(), **found}

    # --- inside --------------------------------------------------------------------------------------------

    def _main(self) -> None:
        while self.run is not None:
            with _harmless():
                self._tick(self.run)
            gevent.sleep(TICK_S)

    def _tick(self, run: Run) -> None:
        if self._feed is not None:
            self._feed.tick()

    def _live_rows(self, run: Run) -> list[Row]:
        if self._figures is None:
            return []
        self._figures.simulated = {lane.name for lane in run.lanes if lane.info and lane.info.simulated}
        return self._figures.rows()

    def _stage(self) -> str:
        """`block 2 of 6, vllm: 37 of 64 done, 4 min left`."""
        d = self._director
        if d is None:
            return ""
        try:
            return self._words(d)
        except Exception:  # a director of another kind; what it does is in its notes and marks
            return ""

    def _words(self, d: Director) -> str:
        blocks = d.run.settings.blocks
        parts = [f"block {min(d.block + 1, blocks)} of {blocks}"]
        if d.active:
            parts += [f"{turn.engine}: {batch.finished} of {batch.total} done" for turn, batch in d.active]
        else:
            parts.append(d.stage)
        left = time_left_s(d)
        if left is not None:
            parts.append(f"{left:.0f} s left" if left < 90 else f"{left / 60:.0f} min left")
        return clean(", ".join(parts), 200)


def _notes(run: Run) -> list[str]:
    return [clean(note, 400) for note in run.manifest.notes[-NOTES:]]


@contextlib.contextmanager
def _harmless() -> Any:
    """What goes wrong for the page is none of the measurement's business."""
    try:
        yield
    except (StoreError, OSError) as e:
        log.warning("the live page lacks something: %s", e)
    except Exception:
        log.exception("the live page has a mistake; the run does not care")
