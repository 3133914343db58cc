"""Parquet from the journal: requests.parquet, one row a request, and chunk_events.parquet, one row an event.

requests.parquet has RequestRecord's columns but the lists (`server_timings` as JSON text), and `text_events`
and `text_tokens`: the number of text-bearing events and, where each event's tokens are known, their sum.
chunk_events.parquet has run, engine, worker, point_ns (these two name the request), sequence, turn, phase,
outcome, `index` from 0, `event_us` since sent, `t_ns` in wall time, `tokens` where known, and `exact`: false
where the time is only an upper bound. Both are in the journal's order.

The journal stays the truth. Both files carry a stamp of the journals that they were made from, so that a
reader knows whether they still say the same (loadgen/store/stamp.py).

Needs pyarrow (the extra `parquet`).
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from loadgen.record import RequestRecord
from loadgen.store.errors import StoreError
from loadgen.store.journal import read_once
from loadgen.store.jsonl import Damage
from loadgen.store.rundir import RunDir
from loadgen.store.stamp import KEY, Stamp

BATCH_REQUESTS = 4096
BATCH_EVENTS = 500_000
KEYS = ("run", "engine", "worker", "point_ns", "sequence", "turn", "phase", "outcome")
LISTS = ("event_us", "event_tokens", "coalesced")
MORE = {"text_events": "int", "text_tokens": "int"}


def export(run: RunDir) -> list[Path]:
    """Write both files, replacing older ones; their paths. Raises StoreError, also without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise StoreError("Parquet needs pyarrow: pip install 'loadgen[parquet]'") from None

    arrow = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    kinds = {
        f.name: str(f.type).removesuffix(" | None") for f in fields(RequestRecord) if f.name not in LISTS
    }
    requests = pa.schema([(name, arrow.get(kind, pa.string())) for name, kind in (kinds | MORE).items()])
    events = pa.schema(
        [(name, requests.field(name).type) for name in KEYS]
        + [("index", pa.int32()), ("event_us", pa.int64()), ("t_ns", pa.int64()), ("tokens", pa.int32())]
        + [("exact", pa.bool_())]
    )

    def write(path: Path, schema: Any, batches: Callable[[_Rows], Iterator[dict[str, Any]]]) -> Path:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        rows = _Rows(run, kinds)
        try:
            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                for batch in batches(rows):
                    writer.write_table(pa.table(batch, schema=schema))
                writer.add_key_value_metadata({KEY: rows.stamp().to_json()})
            os.replace(part, path)
        except OSError as e:
            raise StoreError(f"{path} cannot be written: {e.strerror or e}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    return [
        write(run.requests_parquet, requests, _request_batches),
        write(run.chunk_events_parquet, events, _event_batches),
    ]


class _Rows:
    """The journals' rows with each value of its kind, else None; `changed` counts those that were not."""

    def __init__(self, run: RunDir, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self.changed = 0
        self._journals = run.journals()
        self._sizes = {path.name: path.stat().st_size for path in self._journals}
        self._damages: list[Damage] = []
        empty = RequestRecord()
        self._defaults = {name: getattr(empty, name) for name in kinds}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row, _ in read_once(self._journals, self._damages):
            yield row

    def value(self, row: dict[str, Any], name: str) -> Any:
        value = row.get(name, self._defaults[name])
        found = _as(self.kinds[name], value)
        if found is None and (value is not None or self._defaults[name] is not None):
            self.changed += 1
        return found

    def numbers(self, row: dict[str, Any], name: str) -> array[int]:
        """A list of whole numbers that their column can hold; empty if it is none."""
        limit = 2**31 if name == "event_tokens" else 2**53
        value = row.get(name)
        try:
            numbers = array("q", value if isinstance(value, list) else [])
        except (TypeError, OverflowError):
            numbers = array("q")
        if numbers and not -limit < min(numbers) <= max(numbers) < limit:
            numbers = array("q")
        self.changed += value is not None and not (isinstance(value, list) and len(numbers) == len(value))
        return numbers

    def stamp(self) -> Stamp:
        warnings = [sentence for damage in self._damages for sentence in damage.sentences()]
        return Stamp(self._sizes, self.changed, warnings)


def _request_batches(rows: _Rows) -> Iterator[dict[str, Any]]:
    def new() -> dict[str, list[Any]]:
        return {name: [] for name in (*rows.kinds, *MORE)}

    batch = new()
    for n, row in enumerate(rows, 1):
        for name in rows.kinds:
            batch[name].append(rows.value(row, name))
        times, tokens = rows.numbers(row, "event_us"), rows.numbers(row, "event_tokens")
        batch["text_events"].append(len(times))
        batch["text_tokens"].append(sum(tokens) if tokens and len(tokens) == len(times) else None)
        if n % BATCH_REQUESTS == 0:
            yield batch
            batch = new()
    yield batch


def _event_batches(rows: _Rows) -> Iterator[dict[str, Any]]:
    batch = _Events()
    for row in rows:
        batch.add(row, rows)
        if batch.n >= BATCH_EVENTS:
            yield batch.columns()
            batch = _Events()
    yield batch.columns()


class _Events:
    """Some requests and all their events."""

    def __init__(self) -> None:
        self.n = 0
        self._keys: dict[str, list[Any]] = {name: [] for name in KEYS}
        self._sent_ns: list[int] = []
        self._counts: list[int] = []
        self._times = array("q")
        self._tokens = array("q")
        self._known: list[bool] = []
        self._late: list[int] = []

    def add(self, row: dict[str, Any], rows: _Rows) -> None:
        times, tokens = rows.numbers(row, "event_us"), rows.numbers(row, "event_tokens")
        n = len(times)
        known = len(tokens) == n
        for name, values in self._keys.items():
            values.append(rows.value(row, name))
        self._sent_ns.append(rows.value(row, "sent_ns") or 0)
        self._late += (self.n + i for i in rows.numbers(row, "coalesced") if 0 <= i < n)
        self._times += times
        self._tokens += tokens if known else array("q", bytes(8 * n))
        self._known.append(known)
        self._counts.append(n)
        self.n += n

    def columns(self) -> dict[str, Any]:
        import pyarrow as pa

        counts = np.array(self._counts, dtype=np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        times = np.array(self._times, dtype=np.int64)
        exact = np.ones(self.n, dtype=np.bool_)
        exact[self._late] = False
        unknown = ~np.array(self._known, dtype=np.bool_)[owner] if self.n else None
        key_types = {"point_ns": pa.int64(), "sequence": pa.int64(), "turn": pa.int64()}
        return {
            **{
                name: pa.array(values, key_types.get(name, pa.string())).take(pa.array(owner))
                for name, values in self._keys.items()
            },
            "index": (np.arange(self.n) - (np.cumsum(counts) - counts)[owner]).astype(np.int32),
            "event_us": times,
            "t_ns": np.array(self._sent_ns, dtype=np.int64)[owner] + times * 1000,
            "tokens": pa.array(np.array(self._tokens, dtype=np.int64), mask=unknown).cast(pa.int32()),
            "exact": exact,
        }


_TYPES: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: isinstance(v, str),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**63,
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
}


def _as(kind: str, value: Any) -> Any:
    """The value if it is of its kind, else None; objects as JSON text."""
    if value is None or kind not in _TYPES:
        return None if value is None else orjson.dumps(value).decode()
    return value if _TYPES[kind](value) else None


def main() -> None:
    """`python -m loadgen.store.parquet RUN_DIRECTORY`"""
    try:
        export(RunDir.open(Path(sys.argv[1])))
    except StoreError as e:
        sys.exit(f"loadgen: {e}")


if __name__ == "__main__":
    main()
