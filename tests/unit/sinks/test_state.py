"""Offsets survive, and belong to the file they were made for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from loadgen.sinks.deadletter import DeadLetter, DeadLetterFile, read_letters
from loadgen.sinks.lock import delivery_lock
from loadgen.sinks.state import DeliveryState
from loadgen.store import StoreError

LINES = b"".join(b'{"n": %d}\n' % n for n in range(1000))
HALF = LINES.index(b'{"n": 500}')


def delivered(folder: Path, name: str = "requests.jsonl") -> Path:
    (folder / name).write_bytes(LINES)
    state = DeliveryState(folder, "here")
    state.advance(name, HALF)
    state.save()
    return folder / name


def test_goes_on_where_it_was_for_each_destination(tmp_path: Path) -> None:
    delivered(tmp_path)
    there = DeliveryState(tmp_path, "there")
    assert there.offset("requests.jsonl") == 0
    there.advance("requests.jsonl", len(LINES))
    there.save()
    assert DeliveryState(tmp_path, "here").offset("requests.jsonl") == HALF
    assert DeliveryState(tmp_path, "there").offset("requests.jsonl") == len(LINES)
    assert DeliveryState(tmp_path, "here").offset("gpu.jsonl") == 0


@pytest.mark.parametrize(
    ("change", "offset"),
    [
        (lambda p: p.write_bytes(LINES + b"more\n"), HALF),
        (lambda p: p.rename(p.with_name("x")) and p.write_bytes(LINES), HALF),  # a copy is as good
        (lambda p: p.write_bytes(b"other" + LINES), 0),
        (lambda p: p.write_bytes(LINES[: HALF - 1]), 0),
        (lambda p: p.write_bytes(b""), 0),
        (lambda p: p.unlink(), 0),
    ],
)
def test_a_file_that_is_another_begins_at_0(
    tmp_path: Path, change: Callable[[Path], object], offset: int
) -> None:
    change(delivered(tmp_path))
    assert DeliveryState(tmp_path, "here").offset("requests.jsonl") == offset


def test_a_derived_file_counts_as_a_whole(tmp_path: Path) -> None:
    file = delivered(tmp_path, "derived.jsonl")
    assert DeliveryState(tmp_path, "here").offset("derived.jsonl") == HALF
    file.write_bytes(LINES.replace(b'{"n": 250}', b'{"n": 999}'))
    assert DeliveryState(tmp_path, "here").offset("derived.jsonl") == 0


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": 1}', '{"format": 99, "destinations": {}}',
     '{"format": 1, "destinations": {"here": {"files": {"requests.jsonl": 7}}}}',
     '{"format": 1, "destinations": {"here": {"files": {"requests.jsonl": {"offset": "7"}}}}}'],
)  # fmt: skip
def test_a_damaged_state_means_from_the_beginning(tmp_path: Path, text: str) -> None:
    delivered(tmp_path)
    (tmp_path / "delivery.json").write_text(text)
    assert DeliveryState(tmp_path, "here").offset("requests.jsonl") == 0


def test_a_letter_is_kept_once_though_its_batch_is_sent_twice(tmp_path: Path) -> None:
    letters = [DeadLetter("gpu.jsonl", n, f"gpu v={n}", "400: no") for n in range(3)]
    DeadLetterFile(tmp_path).add(letters[:2])
    with open(tmp_path / "dead-letter.jsonl", "ab") as f:
        f.write(b'{"file": "gpu.jso')  # killed while writing
    again = DeadLetterFile(tmp_path)
    assert len(again) == 2
    again.add(letters)
    again.add(letters)
    assert read_letters(tmp_path / "dead-letter.jsonl") == letters
    again.clear()
    assert (len(again), read_letters(tmp_path / "dead-letter.jsonl")) == (0, [])


def test_one_at_a_time(tmp_path: Path) -> None:
    with (
        delivery_lock(tmp_path),
        pytest.raises(StoreError, match="is being delivered already, by process"),
        delivery_lock(tmp_path),
    ):
        pass
    with delivery_lock(tmp_path):
        pass
