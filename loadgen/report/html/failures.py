"""Samples of the requests that failed or were cancelled, from the journals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.record import CANCELLED, FAILED, OK
from loadgen.report.plain import clean
from loadgen.store import RunDir, StoreError

SAMPLES = 5
ALIKE = 2
MOST_KINDS = 20
LONGEST_TEXT = 500
_NOT_OK = re.compile(rb'"outcome":\s*"(?:failed|cancelled)"')
KEPT = (
    "sent_ns",
    "point_ns",
    "turn",
    "user",
    "sequence",
    "status",
    "error_text",
    "response_id",
    "phase",
    "worker",
)


@dataclass
class Failures:
    """One kind of failure of an engine: how many, and rows of a few, not more than two
    with one text.

    A row has the names of KEPT that its record has."""

    engine: str
    kind: str
    count: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, row: dict[str, Any]) -> None:
        self.count += 1
        words = clean(row.get("error_text", ""), LONGEST_TEXT)
        kept = {k: row[k] for k in KEPT if row.get(k) is not None}
        if self.texts.get(words, 0) < ALIKE and len(self.rows) < SAMPLES:
            self.texts[words] = self.texts.get(words, 0) + 1
            self.rows.append(kept)


def failures(run: RunDir) -> list[Failures]:
    """What went wrong, most frequent first. Raises StoreError.

    Of a journal's lines only those of unsuccessful requests are parsed: of a million requests that is a
    second's work.
    """
    found: dict[tuple[str, str], Failures] = {}
    seen: set[tuple[str, str]] = set()
    journals = run.journals()
    for row in itertools.chain.from_iterable(map(_unsuccessful, journals)):
        if len(journals) > 1:  # a worker's journal repeats what the master's has
            key = (str(row.get("worker")), str(row.get("point_ns")))
            if key in seen:
                continue
            seen.add(key)
        kind = str(row.get("error") or ("unknown" if row["outcome"] == FAILED else CANCELLED))
        name = str(row.get("engine") or "")
        found.setdefault((name, kind), Failures(name, kind)).add(row)
    return sorted(found.values(), key=lambda f: -f.count)


def _unsuccessful(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open(path, "rb") as f:
            yield from _rows(line for line in f if _NOT_OK.search(line))
    except OSError as e:
        raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None


def _rows(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # load_run says so
        if isinstance(row, dict) and row.get("outcome", OK) != OK:
            yield row
