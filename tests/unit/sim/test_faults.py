from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sim.faults import FAULTS, FaultError, Plan, describe, make_plan, parse_fault
from loadgen.sim.framing import Framer, change_head


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("crlf", ("crlf", "", 1.0)),
        ("stall", ("stall", "4", 1.0)),
        ("stall:20", ("stall", "20", 1.0)),
        ("stall:20@0.1", ("stall", "20", 0.1)),
        ("429@0.5", ("429", "", 0.5)),
    ],
)
def test_parse(text: str, expected: tuple[str, str, float]) -> None:
    assert parse_fault(text) == expected


@pytest.mark.parametrize("text", ["", "nope", "stall:many", "stall@2", "stall@x", "delay:fast"])
def test_bad_faults_are_one_sentence(text: str) -> None:
    with pytest.raises(FaultError) as e:
        parse_fault(text)
    assert len(str(e.value).splitlines()) == 1


def test_share() -> None:
    plans = [make_plan([("crlf", "", 0.25)], "", random.Random(i)) for i in range(400)]
    assert 60 < sum(p.newline == "crlf" for p in plans) < 140


def test_no_fault_is_plain() -> None:
    assert Plan().plain
    assert not make_plan([], "bom", random.Random()).plain


def test_every_fault_is_described() -> None:
    text = describe()
    for name, fault in FAULTS.items():
        assert f"  {name}" in text
        assert fault.text in text


@given(st.binary(max_size=300), st.integers(-1, 20), st.booleans())
def test_writes_are_the_bytes(data: bytes, split: int, utf8: bool) -> None:
    framer = Framer(Plan(split=split, split_utf8=utf8), random.Random(1))
    assert b"".join(framer.writes(data)) == data


def test_framing() -> None:
    framer = Framer(Plan(), random.Random())
    assert framer.chunk([b"{}"]) == b"a\r\ndata: {}\n\n\r\n"
    assert framer.chunk([b"{}", b"[]"]) == b"14\r\ndata: {}\n\ndata: []\n\n\r\n"
    assert framer.end() == b"0\r\n\r\n"


def test_change_head_keeps_the_mark_last() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: a\r\nKeep-Alive: x\r\nTransfer-Encoding: chunked\r\n"
        b"Mark: m\r\n\r\n"
    )
    changed = change_head(head, Plan(names=["x"], close=True, gzip=True, content_type="b"))
    assert changed == (
        b"HTTP/1.1 200 OK\r\nContent-Type: b\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n"
        b"Connection: close\r\nMark: m\r\n\r\n"
    )
    assert change_head(head, Plan(http10=True)) == b"HTTP/1.0 200 OK\r\nContent-Type: a\r\nMark: m\r\n\r\n"
