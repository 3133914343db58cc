"""RowError, and the checks that raise it."""

from __future__ import annotations

from typing import Any

from loadgen.sinks.lineprotocol import LAST_NS


class RowError(ValueError):
    """A row that can be no point: the text says why."""


def moment(row: dict[str, Any], name: str = "t_ns") -> int:
    """The row's time in wall nanoseconds. Raises RowError if it has none that a point can have."""
    value = row.get(name)
    if type(value) is not int or not 0 < value <= LAST_NS:
        raise RowError(f"it has no {name}" if value is None else f"its {name} is {value!r:.40}")
    return value
