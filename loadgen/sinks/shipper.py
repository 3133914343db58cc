"""The shipper: a process beside a run that delivers it to InfluxDB.

    python -m loadgen.sinks.shipper RUN_DIR

The first line of its input is `{"influxdb": {...}}`, an InfluxdbSpec; the token comes from the environment or
the file named there. It follows the run until its input ends or says `end`, delivers what is left, makes
derived.jsonl, delivers that, and exits: 0 if all is delivered, 1 if not, 2 if it could not begin. On its
output it says how it fares, a line of JSON at a time:

    {"state": "delivering", "lines": 81200, "left": 4410, "dead": 0, "why": ""}

States: `delivering`, `waiting` (for the database; `why`), `stopped` (a person has to act; `why`), `done`.
`lines` were delivered by this process, `left` are not delivered yet, `dead` were refused for good.

It has no part in the load generator's process: no Locust, no gevent, and a lower priority.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from loadgen import exitcodes
from loadgen.config import ConfigError, InfluxdbSpec
from loadgen.sinks.delivery import Delivery, finish
from loadgen.sinks.influxdb import InfluxWriter, WriteError
from loadgen.sinks.lock import delivery_lock
from loadgen.sinks.sending import GaveUp
from loadgen.store import RunDir, StoreError

POLL_S = 0.5
STATUS_S = 1.0
NICE = 10


class StatusLines:
    """Tells on `out`: a change of state at once, figures once a second. Nobody has to listen."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._last = ""
        self._at = 0.0
        self.delivery: Delivery | None = None

    def tell(self, state: str, why: str) -> None:
        now = time.monotonic()
        if state == self._last and now - self._at < STATUS_S:
            return
        self._last, self._at = state, now
        self._print({"state": state, **self._figures(), "why": why})

    def last(self, state: str, why: str) -> None:
        self._print({"state": state, **self._figures(), "why": why})

    def _figures(self) -> dict[str, int]:
        if self.delivery is None:
            return {"lines": 0, "left": 0, "dead": 0}
        d = self.delivery
        return {"lines": d.lines, "left": d.left(), "dead": d.dead}

    def _print(self, row: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(json.dumps(row), file=self._out, flush=True)


def run_shipper(folder: Path, orders: IO[str], out: IO[str]) -> int:
    """Everything but the process's own manners. Returns the exit code."""
    status = StatusLines(out)
    try:
        run = RunDir.open(folder)
        writer = _writer(orders.readline())
        with delivery_lock(run.path):
            ending = threading.Event()
            delivery = Delivery(run, writer, ending=ending, tell=status.tell)
            status.delivery = delivery
            threading.Thread(target=_listen, args=(orders, ending), daemon=True).start()
            with contextlib.closing(writer):
                return _deliver(delivery, ending, status)
    except (ConfigError, StoreError) as e:
        status.last("stopped", str(e))
        return exitcodes.USAGE


def _deliver(delivery: Delivery, ending: threading.Event, status: StatusLines) -> int:
    try:
        while not ending.is_set():
            if not delivery.deliver_new():
                status.tell("delivering", "")
                ending.wait(POLL_S)
        finish(delivery)
    except (WriteError, GaveUp, StoreError) as e:
        status.last("stopped", str(e))
        return exitcodes.FAILED
    status.last("done", "")
    return exitcodes.OK


def _listen(orders: IO[str], ending: threading.Event) -> None:
    """Until `end`, or the end of the input: whoever started this process is gone then."""
    with contextlib.suppress(OSError, ValueError):
        for line in orders:
            if line.strip() == "end":
                break
    ending.set()


def _writer(line: str) -> InfluxWriter:
    try:
        spec = InfluxdbSpec(**json.loads(line)["influxdb"])
    except (ValueError, LookupError, TypeError, ValidationError):
        raise ConfigError('the first line of input must be {"influxdb": {...}}') from None
    return InfluxWriter(spec, spec.token())


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the run, and the run ends this
    with contextlib.suppress(OSError):
        os.nice(NICE)
    return run_shipper(Path(sys.argv[1]), sys.stdin, sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
