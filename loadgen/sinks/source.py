"""Source: one file of a run directory, as the batches of points that are made from it."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

import orjson

from loadgen.sinks.context import RunContext
from loadgen.sinks.deadletter import DeadLetter
from loadgen.sinks.points import CONVERTERS, RowError
from loadgen.sinks.state import DeliveryState
from loadgen.sinks.tail import MAX_BYTES, Chunk, count_lines, read_chunk
from loadgen.store import RunDir, StoreError

DERIVED = "derived.jsonl"
JOURNAL = re.compile(r"(requests|windows|events|gpu|engine)(-[^/]+)?\.jsonl")
# Points of these depend on earlier rows of their file.
LEARNS = ("gpu", "events")


@dataclass(frozen=True)
class Batch:
    """Points of some lines of a file. `rows[i]` is the offset of the row that point i was made from,
    `letters` are rows that no point can be made of, `end` is the offset after the last line."""

    source: Source
    end: int
    lines: int
    points: list[str]
    rows: list[int]
    letters: list[DeadLetter]


class Source:
    """Reads ahead (`next_batch`) of what has been delivered (`done`, `confirm`)."""

    def __init__(self, path: Path, state: DeliveryState) -> None:
        """Goes on where the last process was. Raises OSError."""
        self.path = path
        self.kind = path.stem.partition("-")[0]
        self.inode = os.stat(path).st_ino
        self.done = state.offset(path.name)
        self._read = self.done
        self._learned = self.kind not in LEARNS or not self.done
        self._counted = (self.done, 0)  # offset up to which lines were counted, those after `done`
        self._lock = threading.Lock()

    def is_current(self) -> bool:
        """Whether this is still the file it was: neither replaced nor cut. Raises OSError."""
        info = os.stat(self.path)
        return info.st_ino == self.inode and info.st_size >= self._read

    def next_batch(self, context: RunContext, *, ended: bool) -> Batch | None:
        """None if there is nothing new. Raises OSError."""
        chunk = read_chunk(self.path, self._read, ended=ended)
        if not chunk.lines:
            return None
        if not self._learned:
            self._learn(context)
        self._read = chunk.end
        return self._convert(chunk, context)

    def confirm(self, batch: Batch) -> None:
        """The batch is stored, and everything before it."""
        with self._lock:
            self.done = batch.end
            upto, lines = self._counted
            self._counted = (upto, lines - batch.lines) if upto >= batch.end else (batch.end, 0)

    def rewind(self) -> None:
        """What was read and not confirmed will be read again."""
        self._read = self.done

    def left(self) -> int:
        """Lines that are not delivered yet. What was counted once is not read again to count it."""
        with self._lock:
            upto, lines = self._counted
            try:
                more, upto = count_lines(self.path, upto)
            except OSError:
                return lines
            self._counted = (upto, lines + more)
            return lines + more

    def _convert(self, chunk: Chunk, context: RunContext) -> Batch:
        convert = CONVERTERS[self.kind]
        points: list[str] = []
        rows: list[int] = []
        letters: list[DeadLetter] = []
        offset = chunk.start
        for line in chunk.lines:
            try:
                row = orjson.loads(line)
                if type(row) is not dict:
                    raise RowError("it is not a JSON object")
                made = convert(row, context)
                points += made
                rows += [offset] * len(made)
            except (orjson.JSONDecodeError, RowError) as e:
                if line and not line.isspace():
                    why = "it is not JSON" if isinstance(e, orjson.JSONDecodeError) else str(e)
                    letters.append(DeadLetter(self.path.name, offset, line.decode("utf-8", "replace"), why))
            offset += len(line) + 1
        return Batch(self, chunk.end, len(chunk.lines), points, rows, letters)

    def _learn(self, context: RunContext) -> None:
        """From rows that a process before this one delivered; none later than those."""
        at = 0
        while at < self.done:
            chunk = read_chunk(self.path, at, max_bytes=min(MAX_BYTES, self.done - at))
            if not chunk.lines:
                break
            wanted = chunk.lines if self.kind != "gpu" else [x for x in chunk.lines if b'"facts"' in x]
            self._convert(Chunk(wanted, at, chunk.end), context)
            at = chunk.end
        self._learned = True


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
