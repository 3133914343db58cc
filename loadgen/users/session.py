"""Session: the runs of one Locust process, from the first event to the exit code.

Headless there is one run; from the web UI any number, one after the other, each in a directory of its own.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)
from locust.exception import StopTest

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from loadgen import exitcodes
from loadgen.config import ConfigError, Settings
from loadgen.engines import EngineError
from loadgen.record import CANCELLED, WARMUP, RequestRecord
from loadgen.store import StoreError
from loadgen.store.manifest import COMPLETE, FAILED, INTERRUPTED
from loadgen.stream.reader import Reader
from loadgen.users.clients import client_for
from loadgen.users.crew import Crew
from loadgen.users.delivery import Delivery
from loadgen.users.director import Director
from loadgen.users.dispatcher import Dispatcher
from loadgen.users.lane import Lane
from loadgen.users.options import settings_from
from loadgen.users.prepare import prepare
from loadgen.users.progress import Progress
from loadgen.users.residency import Residency
from loadgen.users.result import show_result
from loadgen.users.run import Run
from loadgen.users.sending import Client
from loadgen.users.shapes import Shapes
from loadgen.users.supply import PromptSupply
from loadgen.users.telemetry import Telemetry
from loadgen.users.user import HOST_HINT, LlmUser, fire_request
from loadgen.users.windows import WindowWriter
from loadgen.workload.prompts import PromptError
from loadgen.workload.shapes import HAND

if TYPE_CHECKING:
    from loadgen.report.summary import RunSummary
    from loadgen.webui import Live

log = logging.getLogger("loadgen")

MISTAKES = (ConfigError, EngineError, PromptError, StoreError)
STATE_RUNS = ("spawning", "running")
CUT_S = 10.0  # until what was cut has been recorded


class Session:
    """What Locust's events do; see `loadgen.users.hooks` for which is which.

    `make_client` may be replaced by tests. `run` is the run that goes on, None between runs. `live` is what
    the web page shows of it, None without one.
    """

    def __init__(self, environment: Any, defaults: Settings, config_file: Path | None) -> None:
        self.environment = environment
        self.crew = self._new_crew()
        self.run: Run | None = None
        self.live: Live | None = None
        self.measured = 0
        self.shapes = Shapes(environment)
        self._defaults = defaults
        self._config_file = config_file
        self._director: Director | None = None
        self._progress: Progress | None = None
        self._users_in = Event()
        self._over = Event()
        self._over.set()
        self._opened: tuple[Settings, list[Lane], PromptSupply] | None = None
        self._result: Callable[[], Sequence[RunSummary]] | None = None
        self._telemetry: Telemetry | None = None
        self._delivery: Delivery | None = None
        self._deliveries: list[gevent.Greenlet] = []
        self._windows: WindowWriter | None = None
        self._reader: Reader | None = None

    @property
    def options(self) -> argparse.Namespace:
        options = self.environment.parsed_options
        assert isinstance(options, argparse.Namespace)
        return options

    @property
    def headless(self) -> bool:
        return bool(self.options.headless)

    # --- before ------------------------------------------------------------------------------------------

    def user_class(self) -> type[LlmUser]:
        """The one workload of this test. Raises ConfigError if there are several, or strangers."""
        classes = list(self.environment.user_classes)
        ours = [c for c in classes if issubclass(c, LlmUser)]
        if len(ours) != 1 or len(classes) != 1:
            names = ", ".join(sorted(c.__name__ for c in classes)) or "none"
            raise ConfigError(
                f"one run is one workload, and these are several: {names}; give one file with -f or one user "
                "class at the end of the command, or `loadgen run reference` for all three in a row"
            )
        if self.options.tags or self.options.exclude_tags:
            raise ConfigError("a workload is one task without tags: leave --tags and --exclude-tags away")
        only: type[LlmUser] = ours[0]
        return only

    def settings(self) -> Settings:
        """What flags, or the web form, ask for now. Raises ConfigError."""
        host = getattr(self.options, "host", None)
        if host and host != HOST_HINT:  # ignored, it would measure servers that nobody meant
            raise ConfigError(
                f"Locust's host is not used here, and it is {host}: name each server with "
                "--engine NAME=KIND:URL (in the web form: Engine), and leave the host as it was"
            )
        own = self.shapes.setting()
        return settings_from(
            self.options, self.user_class().scenario, self._defaults, self._config_file, shape=own
        )

    def first_users(self, asked: int) -> int:
        """How many users Locust shall begin with, where a shape says so; else what it was asked for."""
        try:
            settings = self.settings() if self.run is None else self.run.settings
        except ConfigError:  # told when the test starts
            return asked
        shape = settings.course
        if shape is None or shape.kind == HAND:
            return asked
        return shape.first * (len(settings.engines) if settings.residency == "parallel" else 1)

    def check(self) -> None:
        """Look at settings and engines before anything is started (headless). Raises one of MISTAKES."""
        settings = self.settings()
        self._refuse_endless(settings)
        self._opened = prepare(settings)
        self._open_run()

    def _refuse_endless(self, settings: Settings) -> None:
        shape = settings.course
        if shape is None or shape.kind != HAND:
            return
        if self.headless and not self.options.run_time:
            raise ConfigError(
                "by hand (--shape hand) the users come from the web page: open that (without --headless), "
                "give a shape (--shape steps, ramp, spike, knee), or a time (-t)"
            )
        if len(settings.engines) > 1 and settings.residency != "parallel":
            named = [e for e in settings.engines if e.named]
            if len(named) != 1:
                raise ConfigError(
                    f"by hand one engine is loaded, and here are {len(settings.engines)}: name one with "
                    "--engine (in the web form: Engine), take --residency parallel, or a shape, which runs "
                    "whole on each engine in turn"
                )

    def _open_run(self) -> None:
        assert self._opened is not None
        settings, lanes, supply = self._opened
        self._opened = None
        self._reader = Reader.get()
        # Without kernel stamps the reader takes the clock after each read, and says so.
        self.run = Run(settings, lanes, clock="kernel" if self._reader.stamps else "read")
        self.measured = 0
        try:
            self._telemetry = Telemetry(self.run)
            self._delivery = Delivery(self.run)
            self._telemetry.check()
        except ConfigError as e:
            self.run.note(str(e))
            self._close_run(FAILED)
            raise
        except KeyboardInterrupt:  # a driver that hangs is waited for here
            self._close_run(INTERRUPTED)
            raise
        residency = None
        if settings.residency == "exclusive":
            residency = Residency(self.run.dir.path, settings.ready_timeout_s)
        if settings.open:
            self._become_open()
            if getattr(self.options, "num_users", None) not in (None, 1):
                log.warning("requests come by a schedule: -u, the number of users, is not used")
        self._director = Director(
            self.run,
            self.crew,
            supply,
            residency,
            users_in=self._users_in,
            user_count=lambda: 1 if settings.open else self.environment.runner.user_count,
            want_users=self._want_users,
            end=self._end_soon,
            telemetry=self._telemetry,
            asked_users=lambda: self.environment.runner.target_user_count,
            live_events=self._live_events,
            course=self.shapes.course(),
        )
        log.info("run directory: %s", self.run.dir.path)

    # --- Locust's events ---------------------------------------------------------------------------------

    def test_start(self) -> None:
        """Raises StopTest, which keeps Locust from spawning users, if the run cannot be."""
        self._over.wait()  # a run that is still finishing its last requests goes first
        self._users_in.clear()
        if self._director is None:
            try:
                self.check()
            except MISTAKES as e:
                self.refuse(str(e))
                raise StopTest(str(e)) from None
            except Exception as e:  # Locust would log it and start users who wait for ever
                log.exception("the run cannot be made, for a reason that is a mistake of loadgen's own")
                self.refuse(f"internal error: {e}")
                raise StopTest("the run cannot be made, see the log") from None
        assert self._director is not None
        assert self.run is not None
        self.environment.process_exit_code = None
        self._over.clear()
        self._opened_run(self.run)
        self._windows = self._write_windows()
        self._progress = Progress(self._director, self._live_events)
        if self.live is not None:
            self.live.opened(self.run, self._director)
        self._director.start()

    def refuse(self, sentence: str) -> None:
        """A test that cannot start, or not go on: into Locust's UI, and into the exit code."""
        self.environment.runner.log_exception("local", sentence, sentence)
        self.environment.process_exit_code = exitcodes.FAILED
        if self.live is not None:
            self.live.refused(sentence)

    def spawning_complete(self) -> None:
        self._users_in.set()
        run, director = self.run, self._director
        varies = director is not None and (director.shape is not None or director.run.settings.open)
        if run is not None and director is not None and director.active and not varies:
            working = sum(len(b.members) for _, b in director.active)
            now = self.environment.runner.user_count  # who was just spawned has not joined the crew yet
            if now != working:
                run.note(
                    f"users were changed from {working} to {now} in turn {director.active[0][0].index}: "
                    "more of them work from the next turn on"
                )

    def test_stopping(self) -> None:
        if self._director is None:
            return
        self._director.stop()
        # Where it is not Locust's users who have requests in flight, Locust does not wait for them.
        if not self.crew.drain(self.options.stop_timeout or 0):
            self.cut()
            self.crew.drain(CUT_S)

    def cut(self) -> None:
        """End what is in flight; it is recorded as cancelled."""
        self.crew.cut()
        for greenlet in list(self.environment.runner.user_greenlets):
            greenlet.kill(block=False)

    def test_stop(self) -> None:
        """All users have stopped: close the run."""
        director, run = self._director, self.run
        self._director = None
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        if director is None or run is None:
            return
        state = FAILED
        try:
            director.close()
            state = COMPLETE if director.finished else FAILED if director.failure else INTERRUPTED
            if director.failure:
                run.manifest.note(director.failure)
        finally:
            self._close_run(state)
            self.crew = self._new_crew()
            LlmUser.workplace = self
            self._over.set()
        if director.failure or run.problem:
            self.refuse(director.failure or run.problem or "")
        elif not self.measured:
            log.error("nothing was measured: the run was stopped before its first measured request ended")
            self.environment.process_exit_code = exitcodes.FAILED
        self._result = lambda: show_result(run)
        if not self.headless:
            self.show_result()

    def _close_run(self, state: str) -> None:
        """Everything that belongs to the run is closed, whatever has become of it."""
        run = self.run
        assert run is not None
        try:
            self._closing_run(run)
            self.crew.close()
            if self._windows is not None:
                self._windows.stop()
            if self._telemetry is not None:
                self._telemetry.stop()
            run.close(state)
        finally:
            if self._delivery is not None:
                self._delivery.end()
            for lane in run.lanes:
                lane.engine.close()
            if self.live is not None:
                self.live.closed(state)
            self.run = self._windows = self._telemetry = None

    def quitting(self) -> None:
        """Locust goes down, perhaps in the middle of a run: the run is ended first, as it would be."""
        runner = self.environment.runner
        if runner is not None and runner.state in STATE_RUNS:
            runner.stop()
        self._over.wait()
        if self._director is not None:  # opened, never started
            self.test_stop()

    def show_result(self) -> None:
        """The result of the run that is over, once; then the rest of its delivery."""
        result, self._result = self._result, None
        delivery, self._delivery = self._delivery, None
        if result is not None:
            summaries = result()
            if self.live is not None:
                self.live.concluded(summaries)
        if delivery is not None and self.headless:
            delivery.finish()
        elif delivery is not None:  # the web page goes on meanwhile
            self._deliveries.append(gevent.spawn(delivery.finish))

    def wait_for_deliveries(self) -> None:
        """Those of earlier runs of the web page."""
        gevent.joinall(self._deliveries)

    # --- for users and the director ----------------------------------------------------------------------

    def make_client(self, lane: Lane) -> Client:
        assert self.run is not None
        return client_for(lane, self._reader, self.run.settings.timeouts)

    def record_done(self, record: RequestRecord) -> None:
        """Journal one record; tell Locust of it, unless it is of the warm-up or was cut off."""
        run, director = self.run, self._director
        if run is None:
            return
        run.write(record)
        if self._windows is not None:
            self._windows.add(record)
        if self.live is not None:
            self.live.record(record)
        lane = next((lane for lane in run.lanes if lane.name == record.engine), None)
        if record.phase != WARMUP and record.outcome != CANCELLED:
            self.measured += 1
            if lane is not None and record.outcome == "ok":
                lane.cache.add(record.cached_tokens, record.prompt_tokens)
            simulated = lane is not None and lane.info is not None and lane.info.simulated
            self._tell_locust(record, run, simulated)
        if run.problem and director is not None:
            director.fail(f"the run is stopped: {run.problem}")

    def _write_windows(self) -> WindowWriter | None:
        assert self.run is not None
        names = [lane.name for lane in self.run.lanes]
        try:
            return WindowWriter(self.run.dir.windows_path, names, self.crew, self._live_events)
        except StoreError as e:  # live views lack the generator's part; the run does not
            self.run.note(str(e))
            return None

    def _want_users(self, number: int) -> None:
        self.environment.runner.start(number, max(self.options.spawn_rate or 1, 1))

    def _live_events(self, engine: str) -> int:
        return self._reader.meter(engine).events if self._reader is not None else 0

    # --- what a master does otherwise ----------------------------------------------------------------------

    def _new_crew(self) -> Crew:
        return Crew()

    def _become_open(self) -> None:
        """The run is an open loop."""
        self.crew = Dispatcher(self, self.crew.users)

    def _opened_run(self, run: Run) -> None:
        """A run begins."""

    def _closing_run(self, run: Run) -> None:
        """A run is over; its manifest is about to be written."""

    def _tell_locust(self, record: RequestRecord, run: Run, simulated: bool) -> None:
        fire_request(self.environment, record, run.settings.api, simulated=simulated)

    def _end_soon(self) -> None:
        # Not from here: ending the test stops the greenlets that ask for it.
        gevent.spawn(self._end)

    def _end(self) -> None:
        runner, options = self.environment.runner, self.options
        if self.headless:
            runner.quit()
            return
        runner.stop()
        if options.autostart and options.autoquit != -1:
            gevent.sleep(options.autoquit)
            runner.quit()
            self.environment.web_ui.stop()


def exit_with(sentence: str, code: int = exitcodes.FAILED) -> None:
    """A person's mistake: one sentence, no traceback."""
    print(f"loadgen: {sentence}", file=sys.stderr)
    sys.exit(code)
