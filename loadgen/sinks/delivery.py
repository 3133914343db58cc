"""Delivery of one run directory: journals in, points in InfluxDB, offsets on disk.

Every line is either stored, or in the dead-letter file, before its offset is passed. A process that is killed
at any point sends some points again, which changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import orjson

from loadgen.sinks.context import RunContext
from loadgen.sinks.deadletter import DeadLetter, DeadLetterFile
from loadgen.sinks.influxdb import InfluxWriter, destination
from loadgen.sinks.points import CONVERTERS, RowError
from loadgen.sinks.sending import GaveUp, Sender
from loadgen.sinks.state import DeliveryState
from loadgen.sinks.tail import Chunk, count_lines, read_chunk
from loadgen.store import RunDir, StoreError

DERIVED = "derived.jsonl"
JOURNAL = re.compile(r"(requests|windows|events|gpu|engine)(-[^/]+)?\.jsonl")
RETRY_OWN_S = 2.0


class Delivery:
    """`lines` counts what this process has delivered, `dead` all that was ever refused."""

    def __init__(
        self,
        run: RunDir,
        writer: InfluxWriter,
        *,
        ending: Event | None = None,
        tell: Callable[[str, str], None] = lambda state, why: None,
    ) -> None:
        """`ending` is set when nobody writes to the run any more. `tell(state, why)` hears of `delivering`
        and `waiting`."""
        self.run = run
        self.state = DeliveryState(run.path, destination(writer.spec))
        self.letters = DeadLetterFile(run.path)
        self.lines = 0
        self._context = RunContext(run.name)
        self._manifest_ns = 0
        self._ending = ending or Event()
        self._tell = tell
        self._sender = Sender(writer, self._ending, tell)
        self._at: dict[str, tuple[int, int]] = {}  # file -> offset, inode
        self._counted: dict[str, tuple[int, int]] = {}  # file -> counted up to this offset, lines left there

    @property
    def dead(self) -> int:
        return len(self.letters)

    def again(self) -> None:
        """Begin from the beginning of every file. Raises StoreError."""
        self.state.forget_all()
        self.state.save()
        self._at.clear()
        self._counted.clear()
        try:
            self.letters.clear()
        except OSError as e:
            raise StoreError(f"{self.letters.path} cannot be removed: {e.strerror or e}") from None

    def deliver_new(self) -> bool:
        """One chunk of each journal that has grown; whether there was any. Raises WriteError (a person has to
        act), GaveUp (ending, and the database is away), StoreError."""
        moved = [path for path in journals(self.run) if self._deliver_chunk(path)]
        return bool(moved)

    def deliver_all(self) -> None:
        """All that there is, the derived points last. Raises as `deliver_new`."""
        while self.deliver_new():
            pass
        derived = self.run.path / DERIVED
        while derived.exists() and self._deliver_chunk(derived):
            pass

    def left(self) -> int:
        """Lines that are not delivered yet. What was counted once is not read again to count it."""
        return sum(self._count(p) for p in files(self.run))

    def _count(self, path: Path) -> int:
        try:
            offset = self._offset(path)
            upto, lines = self._counted.get(path.name, (0, 0))
            if upto < offset:
                upto, lines = offset, 0
            more, upto = count_lines(path, upto)
        except OSError:
            return 0
        self._counted[path.name] = (upto, lines + more)
        return lines + more

    def _offset(self, path: Path) -> int:
        """Where this process is in a file; at first, or when it was replaced, where the last one was."""
        name, info = path.name, os.stat(path)
        known = self._at.get(name)
        if known is None or known[1] != info.st_ino or known[0] > info.st_size:
            known = self._at[name] = (self.state.offset(name), info.st_ino)
            self._counted.pop(name, None)
        return known[0]

    def _deliver_chunk(self, path: Path) -> bool:
        try:
            known = path.name in self._at
            offset = self._offset(path)
            chunk = read_chunk(path, offset, ended=self._ending.is_set())
            if not chunk.lines:
                return False
            if not known:
                self._learn(path, offset)
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None
        points, rows, letters = self._convert(path, chunk)
        refused = self._sender.send(points)
        letters += [DeadLetter(path.name, rows[i], points[i], why) for i, why in refused]
        self.lines += len(points) - len(refused)
        self._keep(path.name, chunk.end, letters)
        upto, lines = self._counted.get(path.name, (0, 0))
        if upto >= chunk.end:
            self._counted[path.name] = (upto, lines - len(chunk.lines))
        return True

    def _convert(self, path: Path, chunk: Chunk) -> tuple[list[str], list[int], list[DeadLetter]]:
        """Points, the offset of the row that each was made from, and rows that no point can be made of."""
        convert = CONVERTERS[path.stem.partition("-")[0]]
        context = self._run_context()
        points: list[str] = []
        rows: list[int] = []
        letters: list[DeadLetter] = []
        offset = chunk.start
        for line in chunk.lines:
            try:
                row = orjson.loads(line)
                made = convert(row, context) if type(row) is dict else None
                if made is None:
                    raise RowError("it is not a JSON object")
                points += made
                rows += [offset] * len(made)
            except (orjson.JSONDecodeError, RowError) as e:
                if line and not line.isspace():
                    why = "it is not JSON" if isinstance(e, orjson.JSONDecodeError) else str(e)
                    letters.append(DeadLetter(path.name, offset, line.decode("utf-8", "replace"), why))
            offset += len(line) + 1
        return points, rows, letters

    def _learn(self, path: Path, offset: int) -> None:
        """Rows that were delivered by a process before this one, as later ones of their file need them."""
        kind = path.stem.partition("-")[0]
        if kind not in ("gpu", "events") or not offset:
            return
        at = 0
        while at < offset and (chunk := read_chunk(path, at)).lines:
            wanted = chunk.lines if kind == "events" else [line for line in chunk.lines if b'"facts"' in line]
            self._convert(path, Chunk(wanted, at, chunk.end))
            at = chunk.end

    def _keep(self, name: str, end: int, letters: list[DeadLetter]) -> None:
        """Letters, then the offset, on disk. With no room there it waits: nothing may be passed over."""
        self._at[name] = (end, self._at[name][1])
        while True:
            try:
                self.letters.add(letters)
                self.state.advance(name, end)
                if name.startswith("windows"):
                    self.state.forget(DERIVED)  # its windows must come after those, which they replace
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


def finish(delivery: Delivery) -> None:
    """Deliver what is left of a run that is over, then what can be derived from it only now.

    Raises WriteError, GaveUp, StoreError.
    """
    while delivery.deliver_new():
        pass
    if needs_derived(delivery.run):
        from loadgen.sinks.derive import write_derived  # numpy and scipy: not before they are needed

        write_derived(delivery.run)
    delivery.deliver_all()


def journals(run: RunDir) -> list[Path]:
    """Files that points are made from while the run goes on, in a fixed order. Raises StoreError."""
    try:
        return sorted(p for p in run.path.iterdir() if JOURNAL.fullmatch(p.name))
    except OSError as e:
        raise StoreError(f"{run.path} cannot be read: {e.strerror or e}") from None


def files(run: RunDir) -> list[Path]:
    """All that points are made from, the derived ones last. Raises StoreError."""
    derived = run.path / DERIVED
    return journals(run) + ([derived] if derived.exists() else [])


def missing_lines(run: RunDir, to: str) -> dict[str, int]:
    """File -> lines that are not delivered yet to that destination, where there are any.

    Raises StoreError, OSError.
    """
    state = DeliveryState(run.path, to)
    found = {p.name: count_lines(p, state.offset(p.name))[0] for p in files(run)}
    return {name: n for name, n in found.items() if n}


def needs_derived(run: RunDir) -> bool:
    """Whether derived.jsonl is missing, or older than something that it is made from."""
    sources = journals(run)
    if not any(p.name.startswith("requests") for p in sources):
        return False  # a recording of telemetry
    try:
        made = (run.path / DERIVED).stat().st_mtime_ns
        return any(p.stat().st_mtime_ns > made for p in sources)
    except OSError:
        return True
