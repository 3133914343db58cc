"""Following a file that only grows, by byte offset."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

MAX_LINES = 5_000
MAX_BYTES = 3 * 2**20  # more of it would leave the processor's cache between reading and converting
# No journal has such lines: of a file that is something else, it is taken in pieces of this.
LONGEST_LINE = 64 * 2**20


@dataclass(frozen=True)
class Chunk:
    """Whole lines without their newlines; `start` is the offset of the first, `end` the one to go on from."""

    lines: list[bytes]
    start: int
    end: int


def read_chunk(
    path: Path, offset: int, *, ended: bool = False, max_lines: int = MAX_LINES, max_bytes: int = MAX_BYTES
) -> Chunk:
    """The next lines of a file, none if there is nothing more. Raises OSError.

    A last line without its newline is still being written, and waits. When nobody writes any more (`ended`)
    it is taken if it is whole JSON; else it is the one that a killed writer left.
    """
    with open(path, "rb") as f:
        f.seek(offset)
        data = f.read(max_bytes)
        while b"\n" not in data and (more := f.read(max_bytes)):
            data += more
            if len(data) >= LONGEST_LINE:
                return Chunk([data], offset, offset + len(data))
        at_end = len(data) < max_bytes or not f.read(1)
    cut = data.rfind(b"\n") + 1
    lines = data[:cut].split(b"\n")[:-1]
    if len(lines) > max_lines:
        lines = lines[:max_lines]
        return Chunk(lines, offset, offset + sum(map(len, lines)) + max_lines)
    last = data[cut:]
    if ended and at_end and last and _is_json(last):
        return Chunk([*lines, last], offset, offset + len(data))
    return Chunk(lines, offset, offset + cut)


def count_lines(path: Path, offset: int) -> tuple[int, int]:
    """How many whole lines follow, and the offset after the last of them. Raises OSError."""
    lines = 0
    end = offset
    with open(path, "rb") as f:
        f.seek(offset)
        while data := f.read(MAX_BYTES):
            if n := data.count(b"\n"):
                lines += n
                end = offset + data.rfind(b"\n") + 1
            offset += len(data)
    return lines, end


def size(path: Path) -> int:
    """In bytes; 0 where there is no such file."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(orjson.loads(data), dict)
    except orjson.JSONDecodeError:
        return False
