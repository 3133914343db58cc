"""A run's columns from its Parquet files: the same as from its journals, in a fraction of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from loadgen.metrics.columns import FLAGS, LARGEST, NUMBERS, SINCE_SENT, WHOLE, WORDS, Columns, Floats, Ints
from loadgen.store import RunDir
from loadgen.store.stamp import Stamp

LARGE = 32_000_000  # bytes of journal that take longer to read than pyarrow takes to load
TEXTS = tuple(dict.fromkeys(("engine", "scenario", "error_text", *WORDS)))
COLUMNS = (*NUMBERS, *WHOLE, *FLAGS, *TEXTS, "scheduled_ns", "text_events", "text_tokens")
SMALL_TOKENS = 2**16 - 1

Objects = npt.NDArray[np.object_]


@dataclass
class ParquetRun:
    """Columns by engine, one error text for each engine and kind, what could not be read, and the records'
    scenario."""

    columns: dict[str, Columns]
    examples: dict[str, dict[str, str]]
    warnings: list[str]
    scenario: str


def read_parquet(run: RunDir) -> ParquetRun | None:
    """None where the journals have to be read: they are small, there are no Parquet files or no pyarrow, or
    the files don't say what the journals say now."""
    paths = run.requests_parquet, run.chunk_events_parquet
    if not all(p.is_file() for p in paths) or sum(p.stat().st_size for p in run.journals()) < LARGE:
        return None
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return None
    try:
        if not {*COLUMNS} <= {*pq.read_schema(paths[0]).names}:  # an older version wrote them
            return None
        with (
            pq.ParquetFile(paths[0], read_dictionary=list(TEXTS)) as requests,
            pq.ParquetFile(paths[1]) as events,
        ):
            stamps = [Stamp.read(file.metadata.metadata) for file in (requests, events)]
            if not all(s and s.holds(run, path) for s, path in zip(stamps, paths, strict=True)):
                return None
            found = _Requests(requests)
            if not found.possible():
                return None
            if int(found.counts.sum()) != events.metadata.num_rows:
                return None
            assert stamps[0] is not None
            columns, examples, scenario = found.columns(), found.examples(), found.scenario()
            found.forget()
            pa.default_memory_pool().release_unused()
            _fill_events(events, found, columns)
            return ParquetRun(columns, examples, stamps[0].warnings, scenario)
    except (pa.ArrowException, OSError):  # a damaged file: the journals are the truth
        return None


class _Requests:
    """requests.parquet, read. `engine` is the number of each row's engine in `engines`; `counts` are its
    text events."""

    def __init__(self, file: Any) -> None:
        names = list(COLUMNS)
        table = file.read(columns=names)
        self._number = {name: _floats(table[name]) for name in (*NUMBERS, "text_tokens")}
        self._whole = {name: _ints(table[name]) for name in WHOLE}
        self._flag = {name: np.asarray(table[name], dtype=np.bool_) for name in FLAGS}
        self._words = {name: _words(table[name]) for name in TEXTS}
        scheduled = table["scheduled_ns"]
        self._lag = (self._whole["sent_ns"] - _ints(scheduled)) / 1e6
        self._lag[np.asarray(scheduled.is_null())] = np.nan
        self.counts = _ints(table["text_events"])
        codes, texts = self._words["engine"]
        self.engines = list(dict.fromkeys(str(texts[c] or "") for c in _in_order(codes)))
        number = {name: k for k, name in enumerate(self.engines)}
        self.engine = np.array([number.get(text or "", 0) for text in texts], dtype=np.int64)[codes]

    def possible(self) -> bool:
        """Whether every number is one that a journal's reader takes: else the journals say which lines are
        damaged."""
        return all(
            not (np.abs(of) > LARGEST).any() and not (name in SINCE_SENT and (of < 0).any())
            for name, of in self._number.items()
        )

    def columns(self) -> dict[str, Columns]:
        """By engine, without events but with room for them."""
        return {name: self._columns(np.flatnonzero(self.engine == k)) for k, name in enumerate(self.engines)}

    def _columns(self, rows: Ints) -> Columns:
        counts, carried = self.counts[rows], self._number["text_tokens"][rows]
        output = self._number["output_tokens"][rows]
        known = np.isfinite(carried)
        tokens = np.where(known, carried, np.where(np.isfinite(output), output, counts))
        return Columns(
            number={name: self._number[name][rows] for name in NUMBERS},
            whole={name: values[rows] for name, values in self._whole.items()},
            word={name: self._text(name, rows) for name in WORDS},
            flag={name: values[rows] for name, values in self._flag.items()},
            scheduled_lag_ms=self._lag[rows],
            tokens=tokens,
            event_tokens_known=known,
            starts=np.concatenate(([0], np.cumsum(counts))),
            event_us=np.empty(0, dtype=np.int64),
            event_tokens=np.empty(0, dtype=np.int64),
        )

    def forget(self) -> None:
        """Free what is in the engines' columns by now."""
        for held in (self._number, self._whole, self._flag, self._words):
            held.clear()
        self._lag = np.empty(0)

    def _text(self, name: str, rows: Ints) -> Objects:
        codes, texts = self._words[name]
        return texts[codes[rows]]

    def examples(self) -> dict[str, dict[str, str]]:
        codes, texts = self._words["error_text"]
        some = np.flatnonzero(np.array([bool(text) for text in texts])[codes])
        kinds = self._words["error"][0][some]
        out: dict[str, dict[str, str]] = {}
        pairs = self.engine[some] * (int(kinds.max(initial=0)) + 1) + kinds
        for row in some[_in_order(pairs, index=True)]:
            kind = str(self._text("error", row) or "unknown")
            out.setdefault(self.engines[self.engine[row]], {})[kind] = str(texts[codes[row]])
        return out

    def scenario(self) -> str:
        codes, texts = self._words["scenario"]
        return next((str(texts[c]) for c in _in_order(codes) if texts[c]), "")


def _fill_events(file: Any, requests: _Requests, columns: dict[str, Columns]) -> None:
    """The events of every row, a row group at a time: there may be a gigabyte of them."""
    times, tokens = (_Statistics(file.metadata, name) for name in ("event_us", "tokens"))
    wide = times.low < 0 or times.high >= 2**32
    each = np.broadcast_to(np.uint8(1), (1,)) if tokens.low == tokens.high == 1 else None
    into = []
    for name in requests.engines:
        of = columns[name]
        n = int(of.starts[-1])
        of.event_us = np.empty(n, dtype=np.int64 if wide else np.uint32)
        if each is not None:  # one token an event, as nearly always: no need to keep it a million times
            of.event_tokens = np.broadcast_to(each, (n,))
        else:
            small = tokens.low >= 0 and tokens.high <= SMALL_TOKENS
            of.event_tokens = np.empty(n, dtype=np.uint16 if small else np.int64)
        into.append(of)
    ends = np.cumsum(requests.counts)
    filled = [0] * len(into)
    at = 0
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(
            group, columns=["event_us"] if each is not None else ["event_us", "tokens"]
        )
        n = table.num_rows
        # Which rows these events are of, and so which engine's.
        first, last = np.searchsorted(ends, [at, at + n - 1], side="right") if n else (0, -1)
        inside = np.minimum(ends[first : last + 1], at + n) - np.maximum(
            ends[first : last + 1] - requests.counts[first : last + 1], at
        )
        owners = requests.engine[first : last + 1]
        for k in np.unique(owners):
            of = into[k]
            mine = None if (owners == k).all() else np.repeat(owners == k, inside)
            values = {name: _ints(table[name]) for name in table.column_names}
            some = {name: v if mine is None else v[mine] for name, v in values.items()}
            here = slice(filled[k], filled[k] + len(some["event_us"]))
            of.event_us[here] = some["event_us"]
            if "tokens" in some:
                of.event_tokens[here] = some["tokens"]
            filled[k] = here.stop
        at += n


class _Statistics:
    """The smallest and largest value of a column over all row groups; unknown is anything."""

    def __init__(self, metadata: Any, name: str) -> None:
        column = metadata.schema.names.index(name)
        self.low, self.high = 0, 0
        groups = [metadata.row_group(k).column(column).statistics for k in range(metadata.num_row_groups)]
        some = [s for s in groups if s is None or s.has_min_max]
        if any(s is None for s in groups):
            self.low, self.high = -1, 2**62
        elif some:
            self.low, self.high = min(s.min for s in some), max(s.max for s in some)


def _floats(column: Any) -> Floats:
    """NaN for null."""
    return np.asarray(column.cast("float64").to_numpy(), dtype=np.float64)


def _ints(column: Any) -> Ints:
    """0 for null."""
    values = column.fill_null(0) if column.null_count else column
    return np.asarray(values.to_numpy(), dtype=np.int64)


def _words(column: Any) -> tuple[Ints, Objects]:
    """The number of each row's text, and the texts; the last is None, for rows that have none."""
    whole = column.unify_dictionaries().combine_chunks()
    if hasattr(whole, "chunks"):  # nothing to combine
        return np.empty(0, dtype=np.int64), np.array([None], dtype=object)
    texts = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
    return np.asarray(whole.indices.fill_null(len(texts) - 1), dtype=np.int64), texts


def _in_order(codes: Ints, *, index: bool = False) -> Any:
    """The different codes as they occur first; or where they do."""
    found, first = np.unique(codes, return_index=True)
    return np.sort(first) if index else found[np.argsort(first)]
