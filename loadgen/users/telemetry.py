"""Telemetry: the process that watches GPUs and engines while a run goes on, as the run sees it."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import logging
import time
from collections.abc import Mapping
from typing import Any

import gevent
from gevent.event import AsyncResult

from loadgen.config import ConfigError
from loadgen.users.run import Run
from loadgen.users.sidecar import Sidecar

log = logging.getLogger("loadgen")

READY_S = 20.0
ANSWER_S = 5.0
MODULE = "loadgen.telemetry.child"


class Telemetry:
    """Starts the process with the run and stops it with it.

    The engines' /metrics are scraped there and nowhere else, since a scrape resets gauges of llama.cpp:
    `scrape` asks for one.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._ready: AsyncResult = AsyncResult()
        self._answers: dict[str, AsyncResult] = {}
        self._start_temperatures: dict[str, float] | None = None
        self._mourned = False
        settings = run.settings
        self._sidecar: Sidecar | None = None
        wanted = settings.telemetry
        if wanted.gpu == wanted.engine_metrics == "off" and not (wanted.agents or wanted.dcgm):
            return
        order = {
            "telemetry": settings.telemetry.model_dump(mode="json"),
            # By a pipe that nobody else reads: headers may hold keys, and are needed to ask the engines.
            "engines": [engine.model_dump(mode="json") for engine in settings.engines],
            "host": run.manifest.host.get("name", ""),
        }
        self._sidecar = Sidecar("telemetry", MODULE, run.dir.path, order, self._heard)

    def check(self) -> None:
        """Wait until it is at work. Raises ConfigError if GPUs were asked for and there are none."""
        said = self._wait_ready()
        if self._run.settings.telemetry.gpu == "on" and (said is None or said.get("error")):
            raise ConfigError(str((said or {}).get("error") or "--gpu on: the GPU sampler does not start"))

    def begin(self) -> None:
        """Before the first turn: GPUs and notes go to the manifest, temperatures are remembered."""
        said = self._wait_ready()
        if said is None:
            return
        if said.get("gpus"):
            self._run.manifest.extra["gpus"] = said["gpus"]
        watched = self._run.settings.telemetry
        for note in (*said.get("notes", ()), *([said["error"]] if said.get("error") else ())):
            if said.get("gpus") or watched.gpu == "on" or watched.agents or watched.dcgm:
                self._run.note(str(note))
            else:  # nobody asked for GPUs, and that there are none does not lessen any figure
                log.info("%s", note)
        self._run.update_manifest()
        self._start_temperatures = self._temperatures()

    def scrape(self, engine: str) -> str | None:
        """The engine's /metrics now, in Prometheus' text format; None if it has none or does not answer."""
        answer = self._ask(f"scrape {engine}", {"cmd": "scrape", "engine": engine})
        text = (answer or {}).get("text")
        return text if isinstance(text, str) else None

    @property
    def scrapes(self) -> bool:
        """Whether engines' /metrics are scraped there, so that nobody else should."""
        return self.running and self._run.settings.telemetry.engine_metrics == "on"

    @property
    def running(self) -> bool:
        return self._sidecar is not None and self._sidecar.running

    def degrees_above_start(self) -> float | None:
        """How much hotter than before the first turn the GPU is that has warmed up most, in degrees
        Celsius; None where no GPU is watched."""
        if not self._start_temperatures:
            return None
        now = self._temperatures()
        rises = [now[gpu] - before for gpu, before in self._start_temperatures.items() if gpu in now]
        return max(rises) if rises else None

    def stop(self) -> None:
        """End it. What it could not do is said once."""
        sidecar, self._sidecar = self._sidecar, None
        if sidecar is None:
            return
        self._mourn(sidecar)
        sidecar.tell({"cmd": "stop"})
        sidecar.stop()

    def _temperatures(self) -> dict[str, float]:
        answer = self._ask("gpu", {"cmd": "gpu"}) or {}
        return {
            f"{row.get('host')}/{row.get('gpu')}": float(row["temperature_c"])
            for row in answer.get("gpus", ())
            if isinstance(row.get("temperature_c"), (int, float))
        }

    def _ask(self, key: str, order: Mapping[str, Any]) -> dict[str, Any] | None:
        sidecar = self._sidecar
        if sidecar is None:
            return None
        if self._wait_ready() is None or not sidecar.running:
            self._mourn(sidecar)
            return None
        answer = self._answers[key] = AsyncResult()
        if not sidecar.tell(order):
            return None
        try:
            row = answer.get(timeout=ANSWER_S)
        except gevent.Timeout:
            return None
        finally:
            self._answers.pop(key, None)
        return row if isinstance(row, dict) else None

    def _wait_ready(self) -> dict[str, Any] | None:
        sidecar, began = self._sidecar, time.monotonic()
        while sidecar is not None and time.monotonic() - began < READY_S:
            try:
                said = self._ready.get(timeout=0.05)
            except gevent.Timeout:
                if not sidecar.running:
                    return None
            else:
                return said if isinstance(said, dict) else None
        return None

    def _heard(self, row: dict[str, Any]) -> None:
        if "ready" in row or ("error" in row and "engine" not in row):
            self._ready.set(row)
        elif "gpus" in row and "gpu" in self._answers:
            self._answers["gpu"].set(row)
        elif "engine" in row and (answer := self._answers.get(f"scrape {row['engine']}")) is not None:
            answer.set(row)

    def _mourn(self, sidecar: Sidecar) -> None:
        """A telemetry process that has died costs its samples, and the person should know."""
        if sidecar.running or self._mourned:
            return
        self._mourned = True
        words = sidecar.last_words()
        self._run.note(
            "the telemetry process has ended early, so GPU samples and engine counters are missing"
            + (f" ({words})" if words else "")
        )
