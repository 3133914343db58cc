"""Reading a journal as it is, torn and damaged lines included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from loadgen.store.errors import StoreError

NAMED_LINES = 5


@dataclass
class Damage:
    """What a reader had to skip. Line numbers count from 1; `bad_lines` holds the first few of `bad`.

    `line` is the line being read: whoever finds its content wrong can `add(damage.line)`.
    """

    path: Path = field(default_factory=Path)
    line: int = 0
    torn_line: int | None = None
    bad: int = 0
    bad_lines: list[int] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """One sentence for each kind of damage, none if there is none."""
        out = []
        if self.torn_line is not None:
            out.append(
                f"{self.path.name}: the last line ({self.torn_line}) is cut short, as when a run is killed; "
                "it is left out"
            )
        if self.bad:
            lines = ", ".join(map(str, self.bad_lines)) + (", ..." if self.bad > len(self.bad_lines) else "")
            noun = "line is" if self.bad == 1 else "lines are"
            out.append(f"{self.path.name}: {self.bad} {noun} damaged and left out (line {lines})")
        return out

    def add(self, line: int) -> None:
        self.bad += 1
        if len(self.bad_lines) < NAMED_LINES:
            self.bad_lines.append(line)


def read_rows(path: Path, damage: Damage | None = None) -> Iterator[dict[str, Any]]:
    """The JSON object of every whole line, one at a time.

    A last line without its newline is the one a killed writer was writing: it is given if it is whole
    JSON, else `damage.torn_line` names it. Other lines that aren't a JSON object are counted there as bad.
    Blank lines are nothing. Raises StoreError if the file can't be read.
    """
    damage = damage if damage is not None else Damage()
    damage.path = Path(path)
    try:
        with open(path, "rb") as f:
            for number, line in enumerate(f, 1):
                damage.line = number
                if line.isspace():
                    continue
                try:
                    row = orjson.loads(line)
                except orjson.JSONDecodeError:
                    row = None
                if isinstance(row, dict):
                    yield row
                elif line.endswith(b"\n"):
                    damage.add(number)
                else:
                    damage.torn_line = number
    except OSError as e:
        raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None
