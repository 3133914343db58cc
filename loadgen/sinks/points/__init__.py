"""From a journal's row to lines of line protocol. Pure; a module a measurement.

    convert = CONVERTERS["requests"]
    convert(row, context)       # -> list of lines, empty for a row that makes no point; RowError

A conversion depends on the row and on earlier rows of its file only (`context` learns from them), so that a
row that is delivered again becomes the same point again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadgen.sinks.context import RunContext
from loadgen.sinks.points.derived import derived_lines
from loadgen.sinks.points.engine import engine_lines
from loadgen.sinks.points.errors import RowError
from loadgen.sinks.points.events import event_lines
from loadgen.sinks.points.gpu import gpu_lines
from loadgen.sinks.points.requests import request_lines
from loadgen.sinks.points.windows import window_lines

Converter = Callable[[dict[str, Any], RunContext], list[str]]

CONVERTERS: dict[str, Converter] = {
    "requests": request_lines,
    "windows": window_lines,
    "events": event_lines,
    "gpu": gpu_lines,
    "engine": engine_lines,
    "derived": derived_lines,
}

__all__ = ["CONVERTERS", "Converter", "RowError"]
