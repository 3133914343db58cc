"""MasterSession: a session whose users are in worker processes."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import atexit
import ipaddress
import logging
from typing import Any

from loadgen.record import RequestRecord
from loadgen.report.plain import plural
from loadgen.store import StoreError
from loadgen.store.events import WORKER_LOST
from loadgen.store.lines import LineWriter
from loadgen.users import messages
from loadgen.users.crew import Crew
from loadgen.users.fleet import Fleet
from loadgen.users.peers import Worker
from loadgen.users.run import Run
from loadgen.users.session import Session
from loadgen.users.windows import WindowWriter

log = logging.getLogger("loadgen")


class MasterSession(Session):
    """Runs the turns, and keeps all records and seconds; the workers' own journals are a safety copy."""

    def listen(self) -> None:
        """From now on, to what workers say. Locust leaves without a word when it has waited for workers in
        vain; the run is closed then, too."""
        atexit.register(self.quitting)
        for kind in messages.TO_MASTER:
            self.environment.runner.register_message(
                kind, lambda environment, msg, kind=kind, **_: self._heard(kind, msg)
            )

    @property
    def fleet(self) -> Fleet:
        assert isinstance(self.crew, Fleet)
        return self.crew

    def test_stopping(self) -> None:
        super().test_stopping()  # which waits for what is in flight: Locust ends users at once
        self.fleet.close()  # Locust takes out the workers that it stops, and they are not lost

    def spawning_complete(self) -> None:
        """Workers have their users, or will have them after the turn that goes on."""
        self._users_in.set()

    def cut(self) -> None:
        self.fleet.cut()

    def _heard(self, kind: str, msg: Any) -> None:
        self.fleet.heard(kind, msg.node_id, msg.data)

    def _new_crew(self) -> Crew:
        self._seconds: LineWriter | None = None
        self._lost: list[dict[str, Any]] = []
        return Fleet(
            self.environment.runner,
            record_done=self.record_done,
            window_done=self._second_done,
            lost=self._worker_lost,
            problem=self._worker_problem,
        )

    def _become_open(self) -> None:
        """The workers do."""

    def _opened_run(self, run: Run) -> None:
        names = [e.name for e in run.settings.engines if e.headers]
        if names and not _only_here(self.options.master_bind_host):
            log.warning(
                "the headers of %s go to the workers unencrypted, with the rest of the settings: keep "
                "secrets in the environment of each worker (api_key_env), or the workers on this machine "
                "(--master-bind-host 127.0.0.1)",
                ", ".join(names),
            )
        self.fleet.open(run)

    def _closing_run(self, run: Run) -> None:
        self.fleet.close()
        run.manifest.extra["workers"] = self._lost + self.fleet.facts()
        seconds, self._seconds = self._seconds, None
        if seconds is not None:
            seconds.close()

    def _tell_locust(self, record: RequestRecord, run: Run, simulated: bool) -> None:
        """The worker has."""

    def _live_events(self, engine: str) -> int:
        return self.fleet.live_events(engine)

    def _write_windows(self) -> WindowWriter | None:
        assert self.run is not None
        try:
            self._seconds = LineWriter(self.run.dir.windows_path)
        except StoreError as e:
            self.run.note(str(e))
        return None

    def _second_done(self, line: bytes) -> None:
        if self._seconds is not None:
            self._seconds.append(line)

    def _worker_lost(self, worker: Worker, why: str) -> None:
        run = self.run
        if run is None:
            return
        if worker.greeted:
            self._lost.append({**worker.facts(), "lost": True})
            run.events.append(WORKER_LOST, worker=worker.name, host=worker.host, records=worker.records)
            run.note(
                f"{worker} was lost: {why}; the {plural(worker.records, 'record')} that it had sent count"
            )
        else:
            run.note(f"{worker} takes no part: {why}")
        if not self.fleet.workers:
            self._worker_problem("no worker is left")

    def _worker_problem(self, sentence: str) -> None:
        if self._director is not None:
            self._director.fail(sentence)


def _only_here(host: str) -> bool:
    """Whether what listens at this address is reached from this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
