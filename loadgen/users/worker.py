"""WorkerSession: a worker process sends what the master hands out, and hands back what came of it.

It keeps a journal of its own, a safety copy, and sends every record on, so the master's run directory holds
the whole run.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import gc
import logging
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

from loadgen import __version__
from loadgen.config import ConfigError, Settings
from loadgen.engines import EngineError, EngineInfo, make_engine
from loadgen.record import CANCELLED, WARMUP, RequestRecord
from loadgen.store import JournalWriter, StoreError
from loadgen.stream.client import StreamClient
from loadgen.stream.reader import Reader
from loadgen.users import messages
from loadgen.users.crew import Batch, Crew
from loadgen.users.lane import Lane
from loadgen.users.run import SUITE_ENV
from loadgen.users.user import Client, LlmUser, fire_request
from loadgen.users.windows import WindowWriter

log = logging.getLogger("loadgen")

SEND_S = 0.2
QUIT_S = 30.0  # after Ctrl-C and the longest that requests may take to finish: then the master has gone


class WorkerRun:
    """The run as a worker knows it: enough for its users to make records of."""

    def __init__(self, name: str, settings: Settings, worker: str) -> None:
        self.name = name
        self.settings = settings
        self.worker = worker
        self.host = platform.node()
        self.lanes = {spec.name: Lane(make_engine(spec, settings)) for spec in settings.engines}
        self.sequence = 0
        folder = Path(os.environ.get(SUITE_ENV) or settings.runs_dir) / name
        folder.mkdir(parents=True, exist_ok=True)
        self.journal = JournalWriter(folder / f"requests-{worker}.jsonl")
        self.windows_path = folder / f"windows-{worker}.jsonl"

    def next_sequence(self) -> int:
        self.sequence += 1
        return self.sequence

    def close(self) -> None:
        self.journal.close()
        for lane in self.lanes.values():
            lane.engine.close()


class WorkerSession:
    """Listens to the master, whatever Locust's events say in between."""

    def __init__(self, environment: Any) -> None:
        self.environment = environment
        self.crew = Crew()
        self.run: Any = None
        self._batches: dict[int, tuple[Batch, list[float]]] = {}
        self._lines: list[bytes] = []
        self._window_lines: list[bytes] = []
        self._windows: WindowWriter | None = None
        self._told_users = 0
        self._reader: Reader | None = None
        runner = environment.runner
        for kind in messages.TO_WORKER:
            runner.register_message(kind, self._listener(kind))
        self._sender = gevent.spawn(self._send_for_ever)

    # --- what the master says ------------------------------------------------------------------------------

    def _listener(self, kind: str) -> Callable[..., None]:
        handle: Callable[[Any], None] = getattr(self, f"_on_{kind.removeprefix('loadgen_')}")

        def listen(environment: Any, msg: Any, **_: Any) -> None:
            try:
                handle(msg.data)
            except (ConfigError, EngineError, StoreError, OSError) as e:
                self._problem(str(e))
            except Exception as e:
                log.exception("this worker cannot go on, for a reason that is a mistake of loadgen's own")
                self._problem(f"internal error: {e}")

        return listen

    def _on_run(self, data: bytes) -> None:
        order = messages.unpack(data)
        if order["version"] != __version__:
            raise ConfigError(f"it has loadgen {__version__}, the master has {order['version']}")
        self._close_run()
        settings = Settings.model_validate(order["settings"])
        for spec in settings.engines:
            spec.api_key()  # keys do not travel: each worker has them in its own environment
        self.run = WorkerRun(order["run"], settings, order["worker"])
        self._reader = Reader.get()
        self._told_users = 0
        self._windows = WindowWriter(
            self.run.windows_path,
            list(self.run.lanes),
            self.crew,
            lambda engine: Reader.get().meter(engine).events,
            worker=self.run.worker,
            host=self.run.host,
            also=self._window_lines.append,
        )
        self._tell(messages.HELLO, {"host": self.run.host})

    def _on_batch(self, data: bytes) -> None:
        order = messages.unpack(data)
        lane = self.run.lanes[order["engine"]]
        lane.engine.model = order["model"]
        if lane.info is None:
            spec = lane.engine.spec
            lane.info = EngineInfo(lane.name, spec.kind, spec.url, "", simulated=order["simulated"])
        batch = Batch(lane, order["phase"], order["turn"], order["block"])
        batch.workers = order["workers"]
        for prompt, tokens in messages.prompts_from(order["jobs"]):
            batch.add(prompt, tokens)
        self._batches[order["number"]] = batch, order["offsets_s"]
        gc.collect()
        gc.freeze()
        self._tell(messages.READY, {"number": order["number"]})

    def _on_begin(self, data: dict[str, Any]) -> None:
        number = data["number"]
        batch, offsets = self._batches[number]
        users = list(self.crew.users)[: len(offsets)]
        self.crew.begin(batch, users, offsets[: len(users)])
        gevent.spawn(self._see_it_through, number, batch)

    def _see_it_through(self, number: int, batch: Batch) -> None:
        batch.done.wait()
        self.crew.end(batch)
        self._batches.pop(number, None)
        self._send_rows()
        self._tell(messages.DONE, {"number": number, "unsent": batch.total - batch.finished})

    def _on_halt(self, data: Any) -> None:
        self.crew.halt()
        for number, (batch, _) in list(self._batches.items()):
            if batch not in self.crew.batches:  # told to get ready, never to begin
                self._batches.pop(number)
                self._tell(messages.DONE, {"number": number, "unsent": batch.total})

    def _on_cut(self, data: Any) -> None:
        for greenlet in list(self.environment.runner.user_greenlets):
            greenlet.kill(block=False)

    def _on_clock(self, data: dict[str, Any]) -> None:
        self._tell(messages.CLOCK, {"asked_ns": data["asked_ns"], "said_ns": time.time_ns()})

    def _on_end(self, data: Any) -> None:
        self._close_run()

    # --- what it says --------------------------------------------------------------------------------------

    def _tell(self, kind: str, data: Any) -> None:
        self.environment.runner.send_message(kind, data)

    def _problem(self, text: str) -> None:
        log.error("%s", text)
        self._tell(messages.PROBLEM, {"text": text})

    def _send_for_ever(self) -> None:
        while True:
            gevent.sleep(SEND_S)
            with contextlib.suppress(Exception):  # the channel is Locust's to look after; nothing is dropped
                self._send_rows()
                if self.run is not None and len(self.crew) != self._told_users:
                    self._told_users = len(self.crew)
                    self._tell(messages.USERS, {"users": self._told_users})

    def _send_rows(self) -> None:
        while self._lines or self._window_lines:
            lines, self._lines = self._lines, []
            windows = self._window_lines[:]
            del self._window_lines[:]
            for part in messages.pack_lines(windows):
                self._tell(messages.ROWS, {"windows": part})
            for part in messages.pack_lines(lines):
                self._tell(messages.ROWS, {"records": part})

    # --- for users -----------------------------------------------------------------------------------------

    def make_client(self, lane: Lane) -> Client:
        return StreamClient(lane.engine, self._reader, self.run.settings.timeouts)

    def record_done(self, record: RequestRecord) -> None:
        run = self.run
        if run is None:
            return
        record.worker, record.host = run.worker, run.host
        self._lines.append(run.journal.append(record))
        if self._windows is not None:
            self._windows.add(record)
        if record.phase != WARMUP and record.outcome != CANCELLED:
            lane = run.lanes[record.engine]
            simulated = lane.info is not None and lane.info.simulated
            fire_request(self.environment, record, run.settings.api, simulated=simulated)

    # --- Locust's events -----------------------------------------------------------------------------------

    def test_start(self) -> None:
        """The master says what to do, not Locust."""

    def spawning_complete(self) -> None:
        pass

    def test_stopping(self) -> None:
        self.crew.halt()

    def test_stop(self) -> None:
        """All users have been stopped. The master has drained them before."""
        self._send_rows()

    def quitting(self) -> None:
        self._close_run()

    def interrupted(self) -> None:
        """Ctrl-C: a terminal tells every process of a run, and the master decides what it means. A worker
        without a run has nothing to finish."""
        quit_after_s = 0.0 if self.run is None else self.environment.parsed_options.stop_timeout + QUIT_S
        gevent.spawn_later(quit_after_s, self.environment.runner.quit)

    def show_result(self) -> None:
        pass

    def wait_for_deliveries(self) -> None:
        pass

    def _close_run(self) -> None:
        run, self.run = self.run, None
        if run is None:
            return
        if self._windows is not None:
            self._windows.stop()
            self._windows = None
        with contextlib.suppress(Exception):
            self._send_rows()
            self._tell(messages.BYE, {})
        run.close()
        self.crew = Crew()
        LlmUser.workplace = self
