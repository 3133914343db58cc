"""Delivery of one run directory: journals in, points in InfluxDB, offsets on disk.

Every line is either stored, or in the dead-letter file, before its offset is passed. A process that is killed
at any point sends some points again, which changes nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from loadgen.sinks.context import RunContext
from loadgen.sinks.deadletter import DeadLetter, DeadLetterFile
from loadgen.sinks.influxdb import InfluxWriter, destination
from loadgen.sinks.sending import GaveUp, Sender
from loadgen.sinks.source import DERIVED, Batch, Source, files, journals, needs_derived
from loadgen.sinks.state import DeliveryState
from loadgen.store import RunDir, StoreError

RETRY_OWN_S = 2.0


class Delivery:
    """`lines` counts what this process has delivered, `dead` all that was ever refused.

    While one batch is on its way, the next is read and converted: the database's time and ours overlap.
    """

    def __init__(
        self,
        run: RunDir,
        writer: InfluxWriter,
        *,
        ending: threading.Event | None = None,
        tell: Callable[[str, str], None] = lambda state, why: None,
    ) -> None:
        """`ending` is set when nobody writes to the run any more. `tell(state, why)` hears of `delivering`
        and `waiting`, from any thread."""
        self.run = run
        self.state = DeliveryState(run.path, destination(writer.spec))
        self.letters = DeadLetterFile(run.path)
        self.lines = 0
        self._ending = ending or threading.Event()
        self._tell = tell
        self._sender = Sender(writer, self._ending, tell)
        self._sources: dict[str, Source] = {}
        self._on_its_way: _Sending | None = None
        self._context = RunContext(run.name)
        self._manifest_ns = 0

    @property
    def dead(self) -> int:
        return len(self.letters)

    def again(self) -> None:
        """Begin from the beginning of every file. Raises StoreError."""
        self.state.forget_all()
        self.state.save()
        self._sources.clear()
        try:
            self.letters.clear()
        except OSError as e:
            raise StoreError(f"{self.letters.path} cannot be removed: {e.strerror or e}") from None

    def deliver_new(self) -> bool:
        """One batch of each journal that has grown. False: there was none, and all before is stored.

        Raises WriteError (a person has to act), GaveUp (ending, and the database is away), StoreError.
        """
        return self._deliver(journals(self.run))

    def deliver_derived(self) -> None:
        """What is made when the run is over. Raises as `deliver_new`."""
        derived = self.run.path / DERIVED
        while derived.exists() and self._deliver([derived]):
            pass

    def left(self) -> int:
        """Lines that are not delivered yet. May be asked from any thread."""
        total = 0
        for path in files(self.run):
            with contextlib.suppress(OSError):
                source = self._sources.get(path.name) or Source(path, self.state)
                total += source.left()
        return total

    def _deliver(self, paths: list[Path]) -> bool:
        moved = False
        try:
            for path in paths:
                batch = self._next_batch(path)
                if batch is not None:
                    moved = True
                    self._pass_on(batch)
            if not moved:
                self._pass_on(None)
        except BaseException:
            self._on_its_way = None
            for source in self._sources.values():
                source.rewind()
            raise
        return moved

    def _next_batch(self, path: Path) -> Batch | None:
        try:
            context = self._run_context()
            return self._source(path).next_batch(context, ended=self._ending.is_set())
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None

    def _source(self, path: Path) -> Source:
        """Where this process is in a file; at first, or when it was replaced, where the last one was."""
        known = self._sources.get(path.name)
        if known is None or not known.is_current():
            known = self._sources[path.name] = Source(path, self.state)
        return known

    def _pass_on(self, batch: Batch | None) -> None:
        """Wait for the batch that is on its way, send this one after it, and note that the first is there."""
        before, self._on_its_way = self._on_its_way, None
        refused = before.result() if before else []
        if batch is not None:
            self._on_its_way = _Sending(self._sender, batch)
        if before is None:
            return
        stored = before.batch
        name = stored.source.path.name
        letters = [DeadLetter(name, stored.rows[i], stored.points[i], why) for i, why in refused]
        self.lines += len(stored.points) - len(refused)
        stored.source.confirm(stored)
        self._keep(name, stored.end, stored.letters + letters)

    def _keep(self, name: str, end: int, letters: list[DeadLetter]) -> None:
        """Letters, then the offset, on disk. With no room there it waits: nothing may be passed over."""
        while True:
            try:
                self.letters.add(letters)
                self.state.advance(name, end)
                if name.startswith("windows"):
                    # Exact windows must come after provisional ones, which they replace.
                    self.state.forget(DERIVED)
                    self._sources.pop(DERIVED, None)
                self.state.save()
                return
            except (OSError, StoreError) as e:
                why = f"{self.letters.path}: {e.strerror or e}" if isinstance(e, OSError) else str(e)
                if not letters:
                    # Known by this process; one that comes after it sends these points again.
                    self._tell("delivering", why)
                    return
                self._tell("waiting", why)
                if self._ending.is_set():
                    raise GaveUp(why) from None
                self._ending.wait(RETRY_OWN_S)

    def _run_context(self) -> RunContext:
        """What the manifest says by now: a run writes it more than once."""
        try:
            changed_ns = os.stat(self.run.manifest_path).st_mtime_ns
        except OSError:
            return self._context
        if changed_ns != self._manifest_ns:
            self._manifest_ns = changed_ns
            fresh = RunContext.of(self.run)
            self._context = replace(fresh, gpus=self._context.gpus, phases=self._context.phases)
        return self._context


class _Sending:
    """A batch on its way, in a thread of its own that nobody has to wait for."""

    def __init__(self, sender: Sender, batch: Batch) -> None:
        self.batch = batch
        self._refused: list[tuple[int, str]] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(sender,), daemon=True)
        self._thread.start()

    def result(self) -> list[tuple[int, str]]:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._refused

    def _run(self, sender: Sender) -> None:
        try:
            self._refused = sender.send(self.batch.points)
        except BaseException as e:
            self._error = e


def finish(delivery: Delivery) -> None:
    """Deliver what is left of a run that is over, then what can be derived from it only now.

    Raises WriteError, GaveUp, StoreError.
    """
    while delivery.deliver_new():
        pass
    if needs_derived(delivery.run):
        from loadgen.sinks.derive import write_derived  # numpy and scipy: not before they are needed

        write_derived(delivery.run)
    while delivery.deliver_new():  # what came meanwhile
        pass
    delivery.deliver_derived()
