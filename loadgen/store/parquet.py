"""Parquet from the journal: requests.parquet, one row a request, and chunk_events.parquet, one row an event.

requests.parquet has RequestRecord's columns but the lists (`server_timings` as JSON text).
chunk_events.parquet has run, engine, worker, point_ns (these two name the request), sequence, turn, phase,
outcome, `index` from 0, `event_us` since sent, `t_ns` in wall time, `tokens` where known, and `exact`: false
where the time is only an upper bound.

Needs pyarrow (the extra `parquet`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson

from loadgen.record import RequestRecord
from loadgen.store.errors import StoreError
from loadgen.store.journal import read_once
from loadgen.store.jsonl import Damage
from loadgen.store.rundir import RunDir

BATCH_REQUESTS = 4096
BATCH_EVENTS = 500_000
KEYS = ("run", "engine", "worker", "point_ns", "sequence", "turn", "phase", "outcome")
LISTS = ("event_us", "event_tokens", "coalesced")


def export(run: RunDir) -> list[Path]:
    """Write both files, replacing older ones; their paths. Raises StoreError, also without pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise StoreError("Parquet needs pyarrow: pip install 'loadgen[parquet]'") from None

    kinds = {
        f.name: str(f.type).removesuffix(" | None") for f in fields(RequestRecord) if f.name not in LISTS
    }
    arrow = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    requests = pa.schema([(name, arrow.get(kind, pa.string())) for name, kind in kinds.items()])
    events = pa.schema(
        [(name, requests.field(name).type) for name in KEYS]
        + [("index", pa.int32()), ("event_us", pa.int64()), ("t_ns", pa.int64()), ("tokens", pa.int32())]
        + [("exact", pa.bool_())]
    )

    def write(path: Path, schema: Any, batches: Iterator[dict[str, list[Any]]]) -> Path:
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                for batch in batches:
                    writer.write_table(pa.table(batch, schema=schema))
            os.replace(part, path)
        except OSError as e:
            raise StoreError(f"{path} cannot be written: {e.strerror or e}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    return [
        write(run.requests_parquet, requests, _request_batches(run, kinds)),
        write(run.chunk_events_parquet, events, _event_batches(run, kinds)),
    ]


def _rows(run: RunDir) -> Iterator[dict[str, Any]]:
    damages: list[Damage] = []
    for row, _ in read_once(run.journals(), damages):
        yield row


def _request_batches(run: RunDir, kinds: dict[str, str]) -> Iterator[dict[str, list[Any]]]:
    empty = RequestRecord()
    batch: dict[str, list[Any]] = {name: [] for name in kinds}
    for n, row in enumerate(_rows(run), 1):
        for name, kind in kinds.items():
            batch[name].append(_as(kind, row.get(name, getattr(empty, name))))
        if n % BATCH_REQUESTS == 0:
            yield batch
            batch = {name: [] for name in kinds}
    yield batch


def _event_batches(run: RunDir, kinds: dict[str, str]) -> Iterator[dict[str, list[Any]]]:
    empty = RequestRecord()

    def new() -> dict[str, list[Any]]:
        return {name: [] for name in (*KEYS, "index", "event_us", "t_ns", "tokens", "exact")}

    batch = new()
    for row in _rows(run):
        times = _whole_numbers(row.get("event_us"))
        n = len(times)
        sent_ns = _as("int", row.get("sent_ns")) or 0
        tokens = _whole_numbers(row.get("event_tokens"))
        late = set(_whole_numbers(row.get("coalesced")))
        for name in KEYS:
            batch[name].extend([_as(kinds[name], row.get(name, getattr(empty, name)))] * n)
        batch["index"].extend(range(n))
        batch["event_us"].extend(times)
        batch["t_ns"].extend(sent_ns + t * 1000 for t in times)
        batch["tokens"].extend(tokens if len(tokens) == n else [None] * n)
        batch["exact"].extend(i not in late for i in range(n))
        if len(batch["index"]) >= BATCH_EVENTS:
            yield batch
            batch = new()
    yield batch


def _whole_numbers(value: Any) -> list[int]:
    ok = isinstance(value, list) and all(isinstance(v, int) and abs(v) < 2**53 for v in value)
    return value if ok else []


_TYPES: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: isinstance(v, str),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < 2**63,
    "float": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
}


def _as(kind: str, value: Any) -> Any:
    """The value if it is of its kind, else null; objects as JSON text."""
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
