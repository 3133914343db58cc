"""What Parquet files were made from, so that a reader knows whether the journals still say the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.store.rundir import RunDir

KEY = "loadgen"
FORMAT = 1


@dataclass(frozen=True)
class Stamp:
    """`journals` are sizes in bytes by file name. `changed` is the number of values that are not in the
    Parquet file as they are in the journal, because they were of a wrong type. `warnings` tell what of the
    journals could not be read."""

    journals: Mapping[str, int]
    changed: int = 0
    warnings: list[str] = field(default_factory=list)

    def to_json(self) -> bytes:
        return orjson.dumps({"format": FORMAT, **vars(self)})

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes] | None) -> Stamp | None:
        """From a file's metadata; None of a file of another version."""
        try:
            data: Any = orjson.loads((metadata or {})[KEY.encode()])
            if data["format"] != FORMAT:
                return None
            return cls(dict(data["journals"]), int(data["changed"]), [str(w) for w in data["warnings"]])
        except (KeyError, TypeError, ValueError):
            return None

    def holds(self, run: RunDir, path: Path) -> bool:
        """Does the file at `path` say what the run's journals say now? Only if none is younger than it or of
        another size, and each value could be taken over."""
        try:
            made = path.stat().st_mtime_ns
            stats = {journal.name: journal.stat() for journal in run.journals()}
        except OSError:
            return False
        return (
            not self.changed
            and {name: s.st_size for name, s in stats.items()} == dict(self.journals)
            and all(s.st_mtime_ns <= made for s in stats.values())
        )
