"""Reading journals and events as a crash, or a person's editor, left them."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.record import RequestRecord
from loadgen.store import Damage, EventsWriter, JournalWriter, StoreError, read_events, read_records
from loadgen.store.jsonl import read_rows


@pytest.mark.parametrize(
    ("content", "rows", "torn", "bad"),
    [
        (b"", 0, None, []),
        (b'{"a":1}\n{"a":2}\n', 2, None, []),
        (b'{"a":1}\n{"a":2}', 2, None, []),  # whole but for its newline
        (b'{"a":1}\n{"a":', 1, 2, []),
        (b'{"a":1}\n{"a\xff":2}\n{"a":3}\n', 2, None, [2]),  # not UTF-8
        (b'{"a":1}\nhello\n[1]\n\n  \n{"a":3}\n', 2, None, [2, 3]),
        (b"\0\0\0\0", 0, 1, []),
    ],
)
def test_what_is_read(tmp_path: Path, content: bytes, rows: int, torn: int | None, bad: list[int]) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    damage = Damage()
    assert len(list(read_rows(path, damage))) == rows
    assert (damage.torn_line, damage.bad_lines, damage.bad) == (torn, bad, len(bad))
    assert len(damage.sentences()) == (torn is not None) + bool(bad)


def test_many_bad_lines_are_counted_and_the_first_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"x\n" * 100)
    damage = Damage()
    assert list(read_rows(path, damage)) == []
    assert damage.sentences() == [
        "j.jsonl: 100 lines are damaged and left out (line 1, 2, 3, 4, 5, ...)",
    ]


def test_a_missing_journal_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        list(read_records(tmp_path / "none"))


def test_events_keep_their_times_and_unknown_kinds(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    writer = EventsWriter(path)
    writer.append({"kind": "turn_start", "engine": "a", "turn": 0, "t_ns": 5, "mono_ns": 6})
    writer.append("note", text="fan\nstopped")
    writer.append({"kind": "from the future"})
    writer.close()
    first, note, other = read_events(path)
    assert first == {"kind": "turn_start", "engine": "a", "turn": 0, "t_ns": 5, "mono_ns": 6}
    assert note["text"] == "fan\nstopped"
    assert note["t_ns"] > 1_600_000_000_000_000_000
    assert note["mono_ns"] > 0
    assert other["kind"] == "from the future"


ms = st.none() | st.floats(0, 1e6, allow_nan=False)
us = st.lists(st.integers(0, 2**40), max_size=20)
records = st.builds(
    RequestRecord,
    engine=st.text(st.characters(exclude_categories=["Cs"])),
    error_text=st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    sequence=st.integers(0, 2**31),
    sent_ns=st.integers(0, 2**62),
    scheduled_ns=st.none() | st.integers(0, 2**62),
    ttft_ms=ms,
    e2e_ms=ms,
    complete_ms=ms,
    event_us=us,
    event_tokens=st.none() | st.lists(st.integers(0, 9), max_size=20),
    coalesced=st.lists(st.integers(0, 20), max_size=5),
    server_timings=st.none()
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**63)),
    connection_reused=st.booleans(),
)


@given(records)
def test_a_record_comes_back_from_its_line(record: RequestRecord) -> None:
    line = record.to_json()
    assert b"\n" not in line
    assert RequestRecord.from_dict(orjson.loads(line)) == record


@pytest.mark.parametrize(
    "values",
    [
        {"server_timings": {"big": 2**64, "bigger": 10**5000}},
        {"error_text": "half a pair: \ud800"},
        {"server_timings": {"\ud800": object(), "nan": float("nan"), "list": [1, None, True]}},
    ],
)
def test_no_value_of_a_servers_making_costs_a_record(tmp_path: Path, values: dict[str, Any]) -> None:
    writer = JournalWriter(tmp_path / "j")
    writer.append(RequestRecord(sequence=3, **values))
    writer.close()
    damage = Damage()
    assert [r.sequence for r in read_records(tmp_path / "j", damage)] == [3]
    assert damage.sentences() == []
