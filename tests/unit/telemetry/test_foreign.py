"""Rows from the network: what an agent of another version, or none at all, may do to who collects them."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.telemetry.collector import AgentCollector
from loadgen.telemetry.digest import Digest
from loadgen.telemetry.foreign import foreign_row
from loadgen.telemetry.polling import PollError
from loadgen.telemetry.screen import facts_line, live, plain_line

HEAD: dict[str, Any] = {"kind": "sample", "t_ns": 5, "host": "gpuhost", "gpu": 0, "source": "nvml"}
FACTS: dict[str, Any] = {"kind": "facts", "t_ns": 5, "host": "gpuhost", "gpu": 0, "source": "nvml"}
NOTE: dict[str, Any] = {"kind": "note", "t_ns": 5, "host": "gpuhost", "text": "a GPU was lost"}
PROCESS = {"pid": 7, "memory_bytes": 2**34, "name": "python", "port": 8000}


@pytest.mark.parametrize(
    "row",
    [
        {**HEAD, "power_w": 96.5, "throttle_reasons": ["gpu_idle"], "processes": [PROCESS], "cost_ms": 1.2},
        {
            **FACTS,
            "name": "NVIDIA H200",
            "ecc_enabled": True,
            "memory_total_bytes": 1,
            "unsupported": ["xid"],
        },
        {**HEAD, "mig_instance": "1g.10gb/7", "a_field_of_tomorrow": 3},
        NOTE,
        {**NOTE, "gpu": 3},
    ],
)
def test_rows_pass_as_they_are(row: dict[str, Any]) -> None:
    assert foreign_row(row) == row


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "row",
        {},
        {**HEAD, "kind": "other"},
        {**HEAD, "kind": []},
        {**HEAD, "t_ns": "5"},
        {**HEAD, "t_ns": True},
        {**HEAD, "t_ns": 2**63},
        {**HEAD, "host": ""},
        {**HEAD, "host": {}},
        {**HEAD, "gpu": "0"},
        {**HEAD, "gpu": -1},
        {**HEAD, "gpu": [0]},
        {**FACTS, "source": None},
        {**NOTE, "text": 5},
        {**NOTE, "gpu": "0"},
    ],
)
def test_what_is_no_row(row: Any) -> None:
    assert foreign_row(row) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("power_w", "96"),
        ("power_w", True),
        ("power_w", float("nan")),
        ("memory_used_bytes", 2**70),
        ("some_other_bytes", []),
        ("throttle_reasons", "gpu_idle"),
        ("throttle_reasons", [1]),
        ("processes", 5),
        ("processes", [7]),
        ("processes", [{"name": "no pid"}]),
        ("processes", [{**PROCESS, "port": [8000]}]),
        ("name", 5),
        ("unknown", {"deep": {}}),
    ],
)
def test_a_field_of_a_wrong_type_is_absent(name: str, value: Any) -> None:
    assert foreign_row({**HEAD, name: value}) == HEAD


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
ANY_ROW = st.builds(
    lambda base, changes: {**base, **changes},
    st.sampled_from([{**HEAD, "processes": [PROCESS]}, FACTS, NOTE]),
    st.dictionaries(
        st.sampled_from([*HEAD, "power_w", "processes", "throttle_reasons", "memory_total_bytes", "text"]),
        JUNK,
        max_size=3,
    ),
)
ANSWER = st.fixed_dictionaries(
    {
        "agent": st.just("a"),
        "now_ns": st.just(time.time_ns()) | JUNK,
        "next": st.just(3) | JUNK,
        "missed": st.just(0) | JUNK,
        "rows": st.lists(ANY_ROW | JUNK, max_size=4) | JUNK,
        "facts": st.lists(ANY_ROW, max_size=2) | JUNK,
    }
)


@given(ANSWER)
def test_no_answer_breaks_what_is_shown_or_written(answer: dict[str, Any]) -> None:
    rows: list[Any] = []
    digest = Digest()
    collector = AgentCollector(
        "http://127.0.0.1:9", "t", "here", 1.0, rows.append, [("e", "http://127.0.0.1:80")]
    )
    try:
        body = orjson.dumps(answer)
    except TypeError:  # an integer that JSON has and orjson does not
        return
    collector.get = lambda *_: body  # type: ignore[method-assign]
    try:
        collector.poll()
    except PollError:
        return
    latest = collector.latest()
    live(latest, [row for row in rows if row["kind"] == "facts"], [], "")
    for row in rows:
        orjson.dumps(row)
        digest.add(row)
        if row["kind"] == "facts":
            facts_line(row)
    assert len(digest.lines()) <= len(rows)
    assert len([plain_line(row) for row in latest]) == len(latest)


def test_left_out_rows_are_said_once() -> None:
    rows: list[Any] = []
    answer = {"agent": "a", "now_ns": time.time_ns(), "next": 1, "missed": 0, "facts": [], "rows": [HEAD, {}]}
    collector = AgentCollector("http://127.0.0.1:9", "t", "here", 1.0, rows.append)
    collector.get = lambda *_: orjson.dumps(answer)  # type: ignore[method-assign]
    collector.poll()
    collector.poll()
    assert [row["kind"] for row in rows] == ["note", "sample", "sample"]
    assert "rows that make no sense" in rows[0]["text"]
