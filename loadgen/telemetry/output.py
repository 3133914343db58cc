"""Rows of several threads into one file, which is made when its first row comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from loadgen.store.lines import LineWriter

Write = Callable[[Mapping[str, Any]], None]


class RowFile:
    """`write(row)` from any thread. Raises StoreError where the file cannot be made; LineWriter says what
    becomes of rows when the disk fills up later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._writer: LineWriter | None = None
        self._closed = False

    def write(self, row: Mapping[str, Any]) -> None:
        line = orjson.dumps(row, option=orjson.OPT_NON_STR_KEYS, default=str)
        with self._lock:
            if self._closed:
                return  # a sampler's call that came back after the end
            if self._writer is None:
                self._writer = LineWriter(self.path)
            self._writer.append(line)

    def close(self) -> str | None:
        """What went wrong while writing, in a sentence; None if nothing did."""
        with self._lock:
            self._closed = True
            if self._writer is None:
                return None
            self._writer.close()
            return self._writer.problem
