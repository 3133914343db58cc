"""requests.jsonl: one RequestRecord a line, in the order in which requests ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from loadgen.record import RequestRecord
from loadgen.store.jsonl import Damage, read_rows
from loadgen.store.lines import KEEP_BYTES, LineWriter


class JournalWriter(LineWriter):
    """The journal of one process. See LineWriter for what happens when the disk is full."""

    def __init__(
        self,
        path: Path,
        *,
        keep_bytes: int = KEEP_BYTES,
        fallback_dir: Path | None = None,
        write: Callable[[int, bytes], int] = os.write,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(path, keep_bytes=keep_bytes, fallback_dir=fallback_dir, write=write)
        self._wall_ns = wall_ns
        self._last_ns = 0

    def append(self, record: RequestRecord) -> bytes:  # type: ignore[override]
        """Write one record, its `point_ns` set to now; the line that was written, without its newline.

        `point_ns` is unique and increases even where the wall clock is set back: then it goes on by 1 ns a
        record until the clock has caught up. A record that has one already (it came from a worker, whose
        series it belongs to) keeps it.
        """
        if not record.point_ns:
            self._last_ns = record.point_ns = max(self._wall_ns(), self._last_ns + 1)
        line = _line(record)
        super().append(line)
        return line


def _line(record: RequestRecord) -> bytes:
    """What a server says goes into a record, and JSON knows values that the journal's form doesn't (integers
    past 64 bits, half a surrogate pair): no such value may cost the record."""
    try:
        return record.to_json()
    except TypeError:
        return orjson.dumps({f.name: _plain(getattr(record, f.name)) for f in fields(record)})


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else (float(value) if abs(value) < 2**1000 else None)
    if isinstance(value, dict):
        return {_plain(str(k)): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value).encode("utf-8", "replace").decode()


def read_records(path: Path, damage: Damage | None = None) -> Iterator[RequestRecord]:
    """The records of a journal, one at a time; torn and damaged lines are skipped and told in `damage`."""
    for row in read_rows(path, damage):
        yield RequestRecord.from_dict(row)


def read_once(paths: Sequence[Path], damages: list[Damage]) -> Iterator[tuple[dict[str, Any], Damage]]:
    """The rows of all journals of a run, each with the Damage of its journal; those are appended to
    `damages`, complete once their journal has been read.

    A record that two journals hold (a worker's own and the master's: same worker, same `point_ns`) comes
    once.
    """
    seen: set[tuple[Any, Any]] = set()
    for path in paths:
        damage = Damage()
        damages.append(damage)
        keys = set()
        for row in read_rows(path, damage):
            if len(paths) > 1 and row.get("point_ns"):
                key = (str(row.get("worker")), str(row["point_ns"]))
                keys.add(key)
                if key in seen:
                    continue
            yield row, damage
        seen |= keys
