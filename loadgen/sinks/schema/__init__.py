"""What is stored in InfluxDB: measurements, tags, fields, units. docs/schema.md is made from this.

Every number is a float, but for points in time (`*_ns`), which are integers: a field whose type changed
would be refused. Yes and no are 1 and 0. A value that does not exist is absent.
"""

from __future__ import annotations

from loadgen.sinks.schema.engine import ENGINE_MEMORY, ENGINE_METRICS
from loadgen.sinks.schema.gpu import GPU, GPU_PROCESS, THROTTLE_REASONS
from loadgen.sinks.schema.model import Field, Measurement, Tag
from loadgen.sinks.schema.requests import LLM_REQUEST
from loadgen.sinks.schema.run import RUN_EVENT, RUN_SUMMARY
from loadgen.sinks.schema.windows import LLM_WINDOW, LLM_WINDOW_ALIGNED

MEASUREMENTS = (
    LLM_REQUEST,
    LLM_WINDOW,
    LLM_WINDOW_ALIGNED,
    GPU,
    GPU_PROCESS,
    ENGINE_METRICS,
    RUN_EVENT,
    RUN_SUMMARY,
    ENGINE_MEMORY,
)
BY_NAME = {m.name: m for m in MEASUREMENTS}

__all__ = [
    "BY_NAME",
    "ENGINE_MEMORY",
    "ENGINE_METRICS",
    "GPU",
    "GPU_PROCESS",
    "LLM_REQUEST",
    "LLM_WINDOW",
    "LLM_WINDOW_ALIGNED",
    "MEASUREMENTS",
    "RUN_EVENT",
    "RUN_SUMMARY",
    "THROTTLE_REASONS",
    "Field",
    "Measurement",
    "Tag",
]
