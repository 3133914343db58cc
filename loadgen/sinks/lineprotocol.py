"""InfluxDB's line protocol. Pure: values in, one line of text out.

    llm_window,engine=vllm,run=r1 tokens=812,provisional=1 1796056862000000000

A number without a suffix is a float there, and `813i` an integer. A field keeps the type it had first, so
that only points in time (`*_ns`) are written as integers, always.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TAG_CHARS = 256
STRING_CHARS = 1000
LAST_NS = 2**63 - 2
_CONTROL = [chr(c) for c in (*range(32), 127)]
# A backslash means itself in a tag, unless it stands before a character that needs one: no form is safe.
_TAG = str.maketrans({**dict.fromkeys(_CONTROL, "\\ "), ",": "\\,", "=": "\\=", " ": "\\ ", "\\": "/"})
_STRING = str.maketrans({**dict.fromkeys(_CONTROL, " "), '"': '\\"', "\\": "\\\\"})


def line(measurement: str, tags: Mapping[str, Any], fields: Mapping[str, Any], time_ns: int) -> str | None:
    """One point, None if it has no field with a value. Tags that are None or empty are left out, and so are
    fields that are None, NaN or infinite."""
    body = ",".join([f"{key(k)}={text}" for k, v in fields.items() if (text := field(k, v)) is not None])
    return f"{series(measurement, tags)} {body} {time_ns}" if body else None


def series(measurement: str, tags: Mapping[str, Any]) -> str:
    """Measurement and tags, sorted as InfluxDB keeps them.

    >>> series("gpu", {"run": "a b", "gpu": 0, "source": None})
    'gpu,gpu=0,run=a\\\\ b'
    """
    parts = [f"{key(k)}={tag(v)}" for k, v in sorted(tags.items()) if v is not None and v != ""]
    return ",".join([key(measurement), *parts])


def field(name: str, value: Any) -> str | None:
    """A field's value; None if there is nothing to write. Yes and no are 1 and 0.

    >>> field("ttft_ms", 190), field("sent_ns", 190), field("failed", False), field("phase", "idle")
    ('190', '190i', '0', '"idle"')
    """
    if isinstance(value, str):
        return string(value)
    if isinstance(value, bool):
        value = int(value)
    if isinstance(value, int):
        if name.endswith("_ns"):
            return f"{value}i" if -LAST_NS <= value <= LAST_NS else None
        return str(value) if abs(value) < 2**64 else field(name, _as_float(value))
    if isinstance(value, float) and value - value == 0:  # neither NaN nor infinite
        return f"{int(value)}i" if name.endswith("_ns") else repr(value)
    return None


def key(text: str) -> str:
    return text.translate(_TAG)


def tag(value: Any) -> str:
    """A tag's value: bounded, control characters as spaces, `/` for a backslash."""
    return str(value)[:TAG_CHARS].translate(_TAG)


def string(value: str, limit: int = STRING_CHARS) -> str:
    """A string field's value in its quotes: bounded, control characters as spaces."""
    value = value[:limit]
    if value.isprintable() and '"' not in value and "\\" not in value:
        return f'"{value}"'
    return f'"{value.translate(_STRING)}"'


def _as_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
