"""llm_request from rows of requests.jsonl."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np

from loadgen.metrics.percentiles import rank
from loadgen.record import FAILED
from loadgen.sinks.context import RunContext
from loadgen.sinks.lineprotocol import LAST_NS, series, string
from loadgen.sinks.points.errors import RowError, moment
from loadgen.sinks.schema import LLM_REQUEST

# Made here; every other field is the record's own.
MADE = {
    "decode_tokens_per_s",
    "chunk_gap_p50_ms",
    "chunk_gap_p99_ms",
    "chunk_gap_max_ms",
    "scheduled_ttft_ms",
    "scheduled_e2e_ms",
    "ttft_error_ms",
    "e2e_error_ms",
    "failed",
    "pair",
}
ERROR_TEXT_CHARS = 500
SERIES_KEPT = 10_000
LAYOUTS_KEPT = 1_000
_NUMBERS = tuple(f.name for f in LLM_REQUEST.fields if f.kind == "float" and f.name not in MADE)
_STRINGS = (("response_id", 200), ("finish_reason", 100), ("error_text", ERROR_TEXT_CHARS))
_TAGS = ("engine", "model", "worker", "host", "phase", "outcome", "error", "traffic_class", "replica")
_NUMERIC = (float, int)


def request_lines(row: dict[str, Any], context: RunContext) -> list[str]:
    """One line a request. Runs for every request of every run, some 20 us each: hence its plain form."""
    get = row.get
    time_ns = moment(row, "point_ns")
    parts = ["failed=1" if get("outcome") == FAILED else "failed=0"]
    if numbers := _numbers([*map(get, _NUMBERS)]):
        parts.append(numbers)
    tpot: Any = get("tpot_ms")
    if type(tpot) in _NUMERIC and tpot > 0:
        parts.append(f"decode_tokens_per_s={1000.0 / tpot}")
    if (gaps := chunk_gaps(get("event_us"))) is not None:
        parts.append("chunk_gap_p50_ms={},chunk_gap_p99_ms={},chunk_gap_max_ms={}".format(*gaps))
    for name in ("ttft_error_ms", "e2e_error_ms"):
        error: Any = get(name)
        if type(error) in _NUMERIC and error > 0:
            parts.append(f"{name}={error}")
    if type(pair := get("pair")) is int and pair >= 0:
        parts.append(f"pair={pair}")
    parts += _times(row)
    for name, limit in _STRINGS:
        if isinstance(text := get(name), str):
            parts.append(f"{name}={string(text, limit)}")
    return [f"{_series(row, context)} {','.join(parts)} {time_ns}"]


_layouts: dict[tuple[type, ...], tuple[str, Callable[[list[Any]], Any]] | None] = {}


def _numbers(values: list[Any]) -> str:
    """The record's own numbers, as one piece of the line. Most rows have the same ones: how they are written
    is found once for each combination of types."""
    types = tuple(map(type, values))
    try:
        layout = _layouts[types]
    except KeyError:
        if len(_layouts) >= LAYOUTS_KEPT:
            _layouts.clear()
        layout = _layouts[types] = _layout(types)
    return layout[0] % layout[1](values) if layout else ""


def _layout(types: tuple[type, ...]) -> tuple[str, Callable[[list[Any]], Any]] | None:
    forms = {float: "%r", int: "%d", bool: "%d"}
    there = [(i, name) for i, name in enumerate(_NUMBERS) if types[i] in forms]
    if not there:
        return None
    text = ",".join(f"{name}={forms[types[i]]}" for i, name in there)
    return text, itemgetter(*(i for i, _ in there))


def chunk_gaps(event_us: Any) -> tuple[float, float, float] | None:
    """p50, p99 and the longest of the gaps between events, in ms; None with fewer than two events.

    >>> chunk_gaps([190_086, 230_086, 250_086])
    (20.0, 40.0, 40.0)
    """
    if type(event_us) is not list or len(event_us) < 2:
        return None
    try:
        times = np.frombuffer(array("q", event_us), dtype=np.int64)
    except (TypeError, OverflowError):
        return None
    gaps = times[1:] - times[:-1]
    gaps.sort()
    p50, p99 = _ranks(len(gaps))
    return gaps.item(p50) / 1000, gaps.item(p99) / 1000, gaps.item(-1) / 1000


@functools.lru_cache(maxsize=100_000)
def _ranks(n: int) -> tuple[int, int]:
    return rank(n, 50), rank(n, 99)


def _times(row: dict[str, Any]) -> list[str]:
    sent: Any = row.get("sent_ns")
    scheduled: Any = row.get("scheduled_ns")
    parts = []
    if type(sent) is int and 0 < sent <= LAST_NS:
        parts.append(f"sent_ns={sent}i")
    if type(scheduled) is int and 0 < scheduled <= LAST_NS:
        parts.append(f"scheduled_ns={scheduled}i")
        if type(sent) is int:
            late = (sent - scheduled) / 1e6
            for name in ("ttft_ms", "e2e_ms"):
                value: Any = row.get(name)
                if type(value) in _NUMERIC:
                    parts.append(f"scheduled_{name}={value + late}")
    return parts


def _series(row: dict[str, Any], context: RunContext) -> str:
    get = row.get
    key = (*map(get, _TAGS),)
    try:
        known = context.series.get(key)
    except TypeError:
        raise RowError("one of its tags is not text") from None
    if known is None:
        engine, model, worker, host, phase, outcome, error, traffic_class, replica = key
        tags = context.load_tags(engine, model, worker, host)
        own = {"phase": phase, "outcome": outcome, "error": error, "class": traffic_class}
        if type(replica) is int:
            own["replica"] = str(replica)
        known = series("llm_request", {**tags, **own})
        if len(context.series) >= SERIES_KEPT:
            context.series.clear()
        context.series[key] = known
    return known
