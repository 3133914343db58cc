"""Points of derived.jsonl, which are made elsewhere and only written down here."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import line
from loadgen.sinks.points.errors import RowError, moment


def derived_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    """`{"measurement", "time_ns", "tags": {...}, "fields": {...}}` as it stands; numbers become floats."""
    measurement, tags, fields = row.get("measurement"), row.get("tags"), row.get("fields")
    if not isinstance(measurement, str) or not isinstance(tags, dict) or not isinstance(fields, dict):
        raise RowError("it has no measurement, tags and fields")
    made = line(measurement, tags, fields, moment(row, "time_ns"))
    return [made] if made else []
