"""Whole lines only, wherever reading stops and whatever is still being written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.sinks.tail import Chunk, count_lines, read_chunk, size


@pytest.mark.parametrize(
    ("data", "offset", "ended", "lines", "end"),
    [
        (b"", 0, False, [], 0),
        (b"a\nbb\n", 0, False, [b"a", b"bb"], 5),
        (b"a\nbb\n", 2, False, [b"bb"], 5),
        (b"a\nbb\n", 5, False, [], 5),
        (b"a\nbb", 0, False, [b"a"], 2),  # being written
        (b"a\nbb", 0, True, [b"a"], 2),  # left by a killed writer
        (b'a\n{"x":1}', 0, True, [b"a", b'{"x":1}'], 9),  # all there but its newline
        (b'a\n{"x":1}', 0, False, [b"a"], 2),
        (b"\n\n", 0, False, [b"", b""], 2),
    ],
)
def test_chunks(tmp_path: Path, data: bytes, offset: int, ended: bool, lines: list[bytes], end: int) -> None:
    file = tmp_path / "j"
    file.write_bytes(data)
    assert read_chunk(file, offset, ended=ended) == Chunk(lines, offset, end)


def test_a_chunk_has_no_more_lines_than_asked(tmp_path: Path) -> None:
    file = tmp_path / "j"
    file.write_bytes(b"1\n22\n333\n")
    assert read_chunk(file, 0, max_lines=2) == Chunk([b"1", b"22"], 0, 5)


def test_a_line_longer_than_a_read_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "j"
    file.write_bytes(b"x" * 100 + b"\nnext\n")
    assert read_chunk(file, 0, max_bytes=8).lines[0] == b"x" * 100


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=30),
    st.integers(1, 40),
    st.integers(1, 5),
    st.lists(st.integers(0, 700), max_size=5),
)
def test_a_growing_file_is_read_once(
    tmp_path: Path, lines: list[bytes], max_bytes: int, max_lines: int, cuts: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in lines)
    file = tmp_path / "j"
    read: list[bytes] = []
    offset = 0
    for cut in [*sorted(cuts), len(data)]:
        file.write_bytes(data[:cut])
        while (chunk := read_chunk(file, offset, max_lines=max_lines, max_bytes=max_bytes)).lines:
            assert (chunk.start, len(chunk.lines) <= max_lines) == (offset, True)
            read += chunk.lines
            offset = chunk.end
    assert read == lines
    assert offset == len(data)
    assert count_lines(file, 0) == (len(lines), len(data))


def test_counting_leaves_a_torn_line_out(tmp_path: Path) -> None:
    file = tmp_path / "j"
    file.write_bytes(b"1\n2\n3")
    assert count_lines(file, 2) == (1, 4)
    assert (size(file), size(tmp_path / "none")) == (5, 0)
