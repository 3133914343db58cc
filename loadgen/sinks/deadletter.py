"""dead-letter.jsonl: what could not be delivered and never will be as it is, with the reason.

    {"file": "gpu.jsonl", "offset": 8123, "line": "gpu,gpu=0 power_w=1e999 ...", "why": "400: ..."}

`line` is the line that InfluxDB refused, or the journal's row where no point could be made of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

NAME = "dead-letter.jsonl"
LINE_CHARS = 20_000


@dataclass(frozen=True)
class DeadLetter:
    """`offset` is where the row begins in its file."""

    file: str
    offset: int
    line: str
    why: str


class DeadLetterFile:
    """Appends; a letter that is in the file already (its batch was sent again) is not added again."""

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / NAME
        self._known = {(letter.file, letter.offset, letter.line) for letter in read_letters(self.path)}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, letters: Iterable[DeadLetter]) -> None:
        """On disk (fsync) when it returns. Raises OSError, and may then have written some of them."""
        new = {}
        for letter in letters:
            short = DeadLetter(letter.file, letter.offset, letter.line[:LINE_CHARS], letter.why)
            if (key := (short.file, short.offset, short.line)) not in self._known:
                new[key] = short
        if not new:
            return
        with open(self.path, "ab") as f:
            if f.tell() and not _ends_with_newline(self.path):
                f.write(b"\n")  # a killed process left half a letter
            f.writelines(orjson.dumps(letter) + b"\n" for letter in new.values())
            f.flush()
            os.fsync(f.fileno())
        self._known.update(new)

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)
        self._known.clear()


def read_letters(path: Path) -> list[DeadLetter]:
    """Those there are; a torn or damaged line is none."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError:
        return []
    letters = []
    for line in lines:
        try:
            row = orjson.loads(line)
            letters.append(DeadLetter(row["file"], row["offset"], row["line"], row["why"]))
        except (orjson.JSONDecodeError, LookupError, TypeError):
            continue
    return letters


def _ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as f:
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b"\n"
