"""Scraper: the one reader of the engines' /metrics during a run.

There is only one because llama.cpp starts its throughput gauges anew with each scrape: whoever else needs a
/metrics text of a running run asks `scrape_now`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.config import EngineSpec
from loadgen.engines.control import Control, Reply
from loadgen.engines.errors import EngineError
from loadgen.telemetry.engine_rows import EngineRows

CONNECT_S = 2.0
READ_S = 4.0
# A server without metrics, or one that refuses the key, is asked again only this often.
RARELY_S = 15.0
_RARE = frozenset({"missing", "auth", "config"})
_LEAVE_S = 1.0


class Scraper:
    """Scrapes each engine every `interval_s` seconds, in a thread of its own, so that one that hangs holds
    up no other; beats that a slow answer has overrun are left out, never made up.

    `write` gets the rows of engine.jsonl as dicts, one call at a time and none after `stop`. An engine that
    cannot be scraped gives one row `{"t_ns", "engine", "error"}` for each change of its state. API keys come
    from `env` (None: the process's environment).
    """

    def __init__(
        self,
        engines: Sequence[EngineSpec],
        interval_s: float,
        write: Callable[[dict[str, Any]], None],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._targets = {spec.name: _Target(spec, env) for spec in engines}
        self._interval_s = interval_s
        self._write = write
        self._writing = threading.Lock()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for name, target in self._targets.items():
            thread = threading.Thread(target=self._loop, args=(target,), name=f"scrape {name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def scrape_now(self, name: str) -> str | None:
        """The engine's /metrics as it is now, beside the beat: it makes no row and shortens no interval that
        a rate is taken over. None if there is none; `problem` then tells why."""
        target = self._targets.get(name)
        if target is None:
            return None
        try:
            return target.scrape().text
        except EngineError:
            return None

    def problem(self, name: str) -> str | None:
        """Why the last scrape of this engine failed, in one sentence; None if it did not."""
        target = self._targets.get(name)
        return f"there is no engine {name}" if target is None else target.problem

    def stop(self) -> None:
        """End the beat. A scrape that still waits for its answer is left to itself, and gives no row."""
        with self._writing:
            self._stopping.set()
        deadline = time.monotonic() + _LEAVE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _loop(self, target: _Target) -> None:
        began = time.monotonic()
        wait_s = 0.0
        while not self._stopping.wait(wait_s):
            row, pause_s = target.beat(self._interval_s)
            with self._writing:
                if row is not None and not self._stopping.is_set():
                    self._write(row)
            late = time.monotonic() - began
            wait_s = (math.floor(late / pause_s) + 1) * pause_s - late


@dataclass(frozen=True, slots=True)
class _Scrape:
    """A text, and when the server said it: the middle between question and answer."""

    text: str
    t_ns: int
    mono_ns: int
    ms: float


class _Target:
    def __init__(self, spec: EngineSpec, env: Mapping[str, str] | None) -> None:
        # A connection that is kept would hold one of llama-server's few threads for seconds.
        once = spec.model_copy(update={"headers": {"Connection": "close", **spec.headers}})
        self._control = Control(once, connect_s=CONNECT_S, read_s=READ_S, env=env)
        self._kind = spec.kind
        self._rows = EngineRows(spec.name, spec.model)
        self._lock = threading.Lock()
        self.problem: str | None = None

    def scrape(self) -> _Scrape:
        """Raises EngineError."""
        with self._lock:
            try:
                wall_ns, mono_ns = time.time_ns(), time.monotonic_ns()
                reply = self._control.get("/metrics")
                took_ns = time.monotonic_ns() - mono_ns
                if not reply.ok:
                    raise self._refused(reply)
            except EngineError as e:
                self.problem = str(e)
                raise
            self.problem = None
        text, half_ns = reply.body.decode("utf-8", "replace"), took_ns // 2
        return _Scrape(text, wall_ns + half_ns, mono_ns + half_ns, took_ns / 1e6)

    def beat(self, interval_s: float) -> tuple[dict[str, Any] | None, float]:
        """The row of this beat, if there is one, and the seconds from one beat to the next."""
        try:
            scrape = self.scrape()
            row = self._rows.sample(scrape.text, scrape.t_ns, scrape.mono_ns, scrape.ms)
            if row is not None:
                return row, interval_s
            error = self._control.error(
                f"{self._control.spec.url}/metrics holds none of the metrics of vLLM or llama.cpp", "missing"
            )
        except EngineError as e:
            error = e
        pause_s = max(interval_s, RARELY_S) if error.reason in _RARE else interval_s
        return self._rows.error(error.reason, str(error), time.time_ns()), pause_s

    def _refused(self, reply: Reply) -> EngineError:
        url, said = f"{self._control.spec.url}/metrics", reply.text()
        if reply.status in (404, 405, 501):
            cure = ": start llama-server with --metrics" if self._kind == "llamacpp" else ""
            return self._control.error(f"{url} is not there ({said}), so nothing is known{cure}", "missing")
        if reply.status in (401, 403):
            return self._control.error(f"{url} refuses the key ({said})", "auth")
        if reply.status == 503:
            return self._control.error(f"{url} is not ready ({said})", "loading")
        return self._control.error(f"{url} answers {said}", "answer")
