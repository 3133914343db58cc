"""Delivery: the shipper of a run, as the run sees it. Nothing that happens to it concerns the measurement."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import sys
import time
from typing import Any

from loadgen.plain import plural
from loadgen.users.run import Run
from loadgen.users.sidecar import Sidecar

log = logging.getLogger("loadgen")

MODULE = "loadgen.sinks.shipper"
SHOW_S = 1.0


class Delivery:
    """Starts the shipper with the run, and waits for it when the run is over. `none` if no address is set."""

    def __init__(self, run: Run) -> None:
        spec = run.settings.influxdb
        self._run = run
        self._said: dict[str, Any] = {}
        self._told = ""
        self._ended = False
        self._sidecar: Sidecar | None = None
        if spec.url is None:
            return
        log.info("results go to InfluxDB at %s, bucket %s", spec.url, spec.bucket)
        order = {"influxdb": spec.model_dump(mode="json")}
        self._sidecar = Sidecar("delivery", MODULE, run.dir.path, order, self._heard)

    def end(self) -> None:
        """The run is over and its journals are closed: what is left is delivered now."""
        self._ended = True
        if self._sidecar is not None:
            self._sidecar.end_input()

    def finish(self) -> None:
        """Wait until all is delivered, or cannot be, and say so. The shipper gives up by itself when the
        database does not answer."""
        sidecar, self._sidecar = self._sidecar, None
        if sidecar is None:
            return
        sidecar.end_input()
        tty, shown = sys.stderr.isatty(), False
        try:
            while not sidecar.wait(SHOW_S):
                if tty:
                    print(f"\r\x1b[K{self._progress()}", end="", file=sys.stderr, flush=True)
                    shown = True
        finally:
            if shown:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        sidecar.stop()
        self._conclude(sidecar)

    def _progress(self) -> str:
        left = self._said.get("left")
        what = f", {left:,} left" if isinstance(left, int) else ""
        return f"delivering to InfluxDB{what} (Ctrl-C: later, with `loadgen ship {self._run.name}`)"[:79]

    def _conclude(self, sidecar: Sidecar) -> None:
        said, name = self._said, self._run.name
        if said.get("state") == "done":
            dead = said.get("dead") or 0
            log.info("InfluxDB has all %s points of this run", f"{said.get('lines', 0):,}")
            if dead:
                where = self._run.dir.path / "dead-letter.jsonl"
                log.warning("%s could not be delivered, see %s", plural(dead, "line"), where)
            return
        why = said.get("why") or sidecar.last_words() or "the shipper ended early"
        log.warning("not all of this run is in InfluxDB: %s; nothing is lost: loadgen ship %s", why, name)

    def _heard(self, row: dict[str, Any]) -> None:
        self._said = {**self._said, **row} if row.get("state") != self._said.get("state") else row
        why = row.get("why")
        if row.get("state") in ("waiting", "stopped") and why and why != self._told:
            self._told = why
            log.warning("%s%s", why, "" if self._ended else " (the run goes on)")
        elif row.get("state") == "delivering" and self._told:
            self._told = ""
            log.info("InfluxDB answers again at %s", time.strftime("%H:%M:%S"))
