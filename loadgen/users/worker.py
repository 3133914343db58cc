"""WorkerSession: a worker process sends what the master hands out, and hands back what came of it.

It keeps a journal of its own, a safety copy, and sends every record on, so the master's run directory holds
the whole run.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.exception import RPCError

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
from gevent.lock import RLock

from loadgen import __version__
from loadgen.config import ConfigError, Settings
from loadgen.engines import EngineError, EngineInfo, make_engine
from loadgen.record import CANCELLED, WARMUP, RequestRecord
from loadgen.store import JournalWriter, StoreError
from loadgen.store.manifest import blank, secrets_of
from loadgen.stream.reader import Reader
from loadgen.users import messages
from loadgen.users.clients import client_for
from loadgen.users.crew import Batch, Crew
from loadgen.users.dispatcher import Dispatcher
from loadgen.users.lane import Lane
from loadgen.users.run import SUITE_ENV
from loadgen.users.sending import Client
from loadgen.users.user import fire_request
from loadgen.users.windows import WindowWriter
from loadgen.workload.endless import Endless

log = logging.getLogger("loadgen")

SEND_S = 0.2
IDLE_S = 0.05
LATEST_START_NS = 5_000_000_000  # a start that is named lies no further ahead
QUIT_S = 30.0  # after Ctrl-C and the longest that requests may take to finish: then the master has gone


BORN = os.getpid()  # a worker of --processes is forked later, and is another


def orphaned(born: int, own: int, parent: int) -> bool:
    """Whether the parent that forked this worker has gone: Locust would notice a minute later.

    >>> orphaned(5, 5, 1), orphaned(5, 6, 5), orphaned(5, 6, 1)
    (False, False, True)
    """
    return own != born and parent != born


class WorkerRun:
    """The run as a worker knows it: enough for its users to make records of. All that it writes down is in
    the master's time, `offset_ns` less than this machine's clock says."""

    def __init__(self, name: str, settings: Settings, worker: str, offset_ns: int) -> None:
        self.name = name
        self.settings = settings
        self.worker = worker
        self.host = platform.node()
        self.offset_ns = offset_ns
        self.lanes = {spec.name: Lane(make_engine(spec, settings)) for spec in settings.engines}
        self.sequence = 0
        folder = Path(os.environ.get(SUITE_ENV) or settings.runs_dir) / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise StoreError(f"{folder} cannot be made: {e.strerror or e}") from None
        self.journal = JournalWriter(folder / f"requests-{worker}.jsonl", wall_ns=self.wall_ns)
        self.windows_path = folder / f"windows-{worker}.jsonl"
        self._secrets = secrets_of(settings)

    def wall_ns(self) -> int:
        return time.time_ns() - self.offset_ns

    def write(self, record: RequestRecord) -> bytes:
        """The line that was written."""
        record.worker, record.host = self.worker, self.host
        record.sent_ns -= self.offset_ns
        if record.scheduled_ns is not None:
            record.scheduled_ns -= self.offset_ns
        if record.error_text:
            record.error_text = str(blank(record.error_text, self._secrets))
        return self.journal.append(record)

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
        self._batches: dict[int, tuple[Batch, list[tuple[int, float]]]] = {}
        self._lines: list[bytes] = []
        self._sending = RLock()
        self._window_lines: list[bytes] = []
        self._windows: WindowWriter | None = None
        self._told_users = 0
        self._reader: Reader | None = None
        runner = environment.runner
        for kind in messages.TO_WORKER:
            runner.register_message(kind, self._listener(kind))
        self._start_worker = runner.start_worker
        runner.start_worker = self._start_worker_between_turns
        self._changes = 0
        self._sender = gevent.spawn(self._send_for_ever)
        self._tell(messages.HERE, {})

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
        self.run = WorkerRun(order["run"], settings, order["worker"], order["clock_offset_ns"])
        self._reader = Reader.get()
        self._told_users = 0
        if settings.open:
            self.crew = Dispatcher(self, self.crew.users)
        self._windows = WindowWriter(
            self.run.windows_path,
            list(self.run.lanes),
            self.crew,
            lambda engine: Reader.get().meter(engine).events,
            worker=self.run.worker,
            host=self.run.host,
            wall_ns=self.run.wall_ns,
            also=self._window_lines.append,
        )
        self._tell(messages.HELLO, {"host": self.run.host})

    def _on_batch(self, data: bytes) -> None:
        order = messages.unpack(data)
        self.run.offset_ns = order["clock_offset_ns"]
        lane = self.run.lanes[order["engine"]]
        lane.engine.model = order["model"]
        if lane.info is None:
            spec = lane.engine.spec
            lane.info = EngineInfo(lane.name, spec.kind, spec.url, "", simulated=order["simulated"])
        jobs = list(messages.prompts_from(order["jobs"]))
        source = None
        if "endless" in order:
            key, first_pair, start, step, tokens = order["endless"]
            source = Endless(tuple(prompt for prompt, _ in jobs), key, first_pair, start, step)
        batch = Batch(lane, order["phase"], order["turn"], order["block"], source)
        batch.workers = order["workers"]
        if source is not None:
            batch.output_tokens_each = tokens
        else:
            batch.limit = order["limit"]
            for (prompt, tokens), due_s in zip(jobs, order["due_s"], strict=True):
                batch.add(prompt, tokens, due_s)
        self._batches[order["number"]] = batch, [(n, o) for n, o in order["members"]]
        gc.collect()
        gc.freeze()
        self._tell(messages.READY, {"number": order["number"]})

    def _on_begin(self, data: dict[str, Any]) -> None:
        number = data["number"]
        if number not in self._batches:  # halted meanwhile
            return
        batch, members = self._batches[number]
        users = list(self.crew.users)
        if data.get("start_ns") is not None:  # in the master's time: one schedule, whoever has a part of it
            ahead_ns = data["start_ns"] - self.run.wall_ns()
            batch.start_mono_ns = time.monotonic_ns() + min(max(ahead_ns, 0), LATEST_START_NS)
        here = [(users[n], offset_s) for n, offset_s in members if n < len(users)]
        self.crew.begin(batch, [user for user, _ in here], [offset_s for _, offset_s in here])
        if all(b in self.crew.batches for b, _ in self._batches.values()):
            self.crew.share_out()  # users who have come since the master divided the batches
        gevent.spawn(self._see_it_through, number, batch)

    def _see_it_through(self, number: int, batch: Batch) -> None:
        batch.done.wait()
        self.crew.end(batch)
        self._batches.pop(number, None)
        while self._changes and not self._batches:  # the master divides the next turn among who is here
            gevent.sleep(IDLE_S)
        self._send_rows()
        self._tell_users()
        done = {"number": number, "unsent": batch.total - batch.finished, "skipped": batch.skipped}
        if batch.scheduled:
            done |= {"dropped": batch.dropped, "peak": batch.peak}
        self._tell(messages.DONE, done)

    def _on_close(self, data: dict[str, Any]) -> None:
        if data["number"] in self._batches:
            self.crew.seal(self._batches[data["number"]][0])

    def _on_halt(self, data: Any) -> None:
        self.crew.halt()
        for number, (batch, _) in list(self._batches.items()):
            if batch not in self.crew.batches:  # told to get ready, never to begin
                batch.halt()
                self._batches.pop(number)
                self._tell(messages.DONE, {"number": number, "unsent": batch.total})

    def _on_cut(self, data: Any) -> None:
        self.crew.cut()
        for greenlet in list(self.environment.runner.user_greenlets):
            greenlet.kill(block=False)

    def _on_clock(self, data: dict[str, Any]) -> None:
        self._tell(messages.CLOCK, {"asked_ns": data["asked_ns"], "said_ns": time.time_ns()})

    def _on_end(self, data: Any) -> None:
        self._close_run()
        self._tell(messages.BYE, {})

    # --- what it says --------------------------------------------------------------------------------------

    def _tell(self, kind: str, data: Any) -> None:
        self.environment.runner.send_message(kind, data)

    def _problem(self, text: str) -> None:
        log.error("%s", text)
        self._tell(messages.PROBLEM, {"text": text, "host": platform.node()})

    def _send_for_ever(self) -> None:
        while True:
            gevent.sleep(SEND_S)
            if orphaned(BORN, os.getpid(), os.getppid()):
                log.error("the process that started this worker has gone")
                self.environment.runner.quit()
                return
            with contextlib.suppress(RPCError):  # the channel is Locust's to look after
                self._send_rows()
                self._tell_users()

    def _tell_users(self) -> None:
        users = len(self.crew)
        if self.run is not None and users != self._told_users:
            self._tell(messages.USERS, {"users": users})
            self._told_users = users

    def _send_rows(self) -> None:
        """All that has been written so far, in order. What cannot be sent is kept for the next time."""
        with self._sending:
            for lines, name in ((self._window_lines, "windows"), (self._lines, "records")):
                while lines:
                    part, count = messages.pack_lines(lines)
                    self._tell(messages.ROWS, {name: part})
                    del lines[:count]

    # --- for users -----------------------------------------------------------------------------------------

    def make_client(self, lane: Lane) -> Client:
        return client_for(lane, self._reader, self.run.settings.timeouts)

    def record_done(self, record: RequestRecord) -> None:
        run = self.run
        if run is None:
            return
        self._lines.append(run.write(record))
        if self._windows is not None:
            self._windows.add(record)
        if record.phase != WARMUP and record.outcome != CANCELLED:
            lane = run.lanes[record.engine]
            simulated = lane.info is not None and lane.info.simulated
            fire_request(self.environment, record, run.settings.api, simulated=simulated)

    # --- Locust's events -----------------------------------------------------------------------------------

    def _start_worker_between_turns(self, counts: dict[str, int], **options: Any) -> None:
        """Locust shares users out anew as soon as a worker comes or goes; here they come and go when they
        have no work, or work that is for whoever is there. (A later order of Locust's ends the greenlet in
        which an earlier one waits.)"""
        self._changes += 1
        try:
            while any(not batch.open for batch, _ in self._batches.values()):
                gevent.sleep(IDLE_S)
            self._start_worker(counts, **options)
            while len(self.crew) < self.environment.runner.user_count:  # spawned, and not yet joined
                gevent.sleep(IDLE_S)
        finally:
            self._changes -= 1

    def test_start(self) -> None:
        """The master says what to do, not Locust."""

    def spawning_complete(self) -> None:
        pass

    def test_stopping(self) -> None:
        """By now the master has waited for all that was in flight, so nothing is worth waiting for; and when
        it has stopped its users, a worker of Locust's is deaf for this time."""
        self.environment.stop_timeout = 0
        self.crew.halt()

    def test_stop(self) -> None:
        """All users have been stopped. The master has drained them before."""
        with contextlib.suppress(RPCError):
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
        with contextlib.suppress(RPCError):
            self._send_rows()
        run.close()
        self._batches.clear()
        self.crew.close()
        self.crew = Crew()
