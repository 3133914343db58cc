"""Lines are what InfluxDB's documentation and a real server take them for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.sinks.lineprotocol import STRING_CHARS, TAG_CHARS, field, line, series
from tests.support.influxdb import Bucket


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("ttft_ms", 190.086907, "190.086907"),
        ("ttft_ms", 190, "190"),  # no `i`: a float
        ("ttft_ms", 0, "0"),
        ("tiny_ms", 1e-7, "1e-07"),
        ("sent_ns", 1796056862000000000, "1796056862000000000i"),
        ("sent_ns", 1796056862000000000.0, "1796056862000000000i"),
        ("failed", True, "1"),
        ("failed", False, "0"),
        ("text", 'say "a\\b"', '"say \\"a\\\\b\\""'),
        ("text", "two\nlines", '"two lines"'),
        ("text", "", '""'),
        ("ttft_ms", None, None),
        ("ttft_ms", float("nan"), None),
        ("ttft_ms", float("inf"), None),
        ("big", 10**400, None),
        ("big", 2**64, "1.8446744073709552e+19"),
        ("sent_ns", 2**63, None),
        ("list", [1], None),
    ],
)
def test_field_values(name: str, value: Any, text: str | None) -> None:
    assert field(name, value) == text


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        ({}, "m"),
        ({"b": "2", "a": "1"}, "m,a=1,b=2"),
        ({"a": None, "b": ""}, "m"),
        ({"a": 0}, "m,a=0"),
        ({"model": "Qwen 3, 8B=fp8"}, "m,model=Qwen\\ 3\\,\\ 8B\\=fp8"),
        ({"model": "C:\\models\\x\\"}, "m,model=C:/models/x/"),
        ({"model": "a\nb"}, "m,model=a\\ b"),
    ],
)
def test_series(tags: dict[str, Any], text: str) -> None:
    assert series("m", tags) == text


def test_a_line_and_no_line() -> None:
    assert line("m", {"a": "x"}, {"v": 1.5, "none": None, "s": "t"}, 7) == 'm,a=x v=1.5,s="t" 7'
    assert line("m", {"a": "x"}, {"none": None}, 7) is None


_COUNT = itertools.count()
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=STRING_CHARS + 10)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tag=_TEXT, text=_TEXT, number=st.floats(allow_nan=False, allow_infinity=False))
def test_a_real_server_gives_back_what_was_written(
    bucket: Bucket, tag: str, text: str, number: float
) -> None:
    measurement = f"m{next(_COUNT)}"
    made = line(measurement, {"tag": tag, "last": "z"}, {"number": number, "text": text}, 1)
    assert made is not None
    answer = requests.post(
        f"{bucket.url}/api/v2/write?org={bucket.org}&bucket={bucket.name}&precision=ns",
        data=made.encode(),
        headers={"Authorization": f"Token {bucket.token}"},
        timeout=10,
    )
    assert answer.status_code == 204, (made, answer.text)

    def plain(value: str) -> str:
        return "".join(" " if ord(c) < 32 or ord(c) == 127 else c for c in value)

    stored_tag = {"tag": plain(tag[:TAG_CHARS]).replace("\\", "/")} if tag else {}
    found = bucket.rows(f"SELECT number, text FROM {measurement} GROUP BY *")
    # Large floats come back as JSON integers.
    assert [{**row, "number": float(row["number"])} for row in found] == [
        {**stored_tag, "last": "z", "time": 1, "number": number, "text": plain(text[:STRING_CHARS])}
    ]
