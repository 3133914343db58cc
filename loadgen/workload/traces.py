"""Recorded traffic: when requests came and how long they were, from the traces that are published.

| format | a row | time |
|---|---|---|
| Mooncake, JSONL | `{"timestamp": 3052, "input_length": 2287, "output_length": 316, ...}` | ms |
| Azure LLM inference, CSV (2023, 2024) | `TIMESTAMP,ContextTokens,GeneratedTokens` | a moment |
| BurstGPT, CSV | `Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,...` | s |

Which one it is shows in its first line. They hold no text: prompts are made, of the lengths that they name.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from loadgen.workload.arrivals import Arrival
from loadgen.workload.prompts import PromptError

DISORDER_S = 60.0  # rows are in order of time, but for so much: reading stops that far beyond a cut
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)


class TraceError(PromptError):
    """A trace that cannot be read, or has nothing to replay; the text is one clear sentence."""


@dataclass(frozen=True, slots=True)
class Trace:
    """`arrivals` in order of time, the first of those that were kept at its distance from the start of the
    cut. `failed` rows had no token in or out (BurstGPT's failures), `too_long` were longer than allowed."""

    format: str
    arrivals: tuple[Arrival, ...]
    failed: int = 0
    too_long: int = 0

    @property
    def seconds(self) -> float:
        """From the start to the last arrival."""
        return self.arrivals[-1].offset_s if self.arrivals else 0.0


def read_trace(
    path: Path,
    *,
    start_s: float = 0.0,
    duration_s: float | None = None,
    requests: int | None = None,
    speed_up: float = 1.0,
    longest: int | None = None,
) -> Trace:
    """Cut a part out of a trace, and speed it up.

    The part begins `start_s` after the trace's first arrival and ends `duration_s` later or with its
    `requests`th one, in the trace's own time; then all offsets are divided by `speed_up`. Rows of more than
    `longest` tokens, prompt and answer together, are left out. Raises TraceError, with the line number.
    """
    if not speed_up > 0 or math.isinf(speed_up):
        raise TraceError(f"a trace is sped up by a number above 0, not by {speed_up:g}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as lines:
            found = _cut(path, lines, start_s, duration_s, requests, longest)
    except OSError as e:
        raise TraceError(f"the trace {path} cannot be read: {e.strerror or e}") from None
    except UnicodeDecodeError:
        raise TraceError(f"the trace {path} is not text") from None
    if not found.arrivals:
        left_out = found.failed + found.too_long
        why = f" ({left_out:,} were left out: empty or too long)" if left_out else ""
        raise TraceError(f"the trace {path} has no request in the part that is asked for{why}")
    arrivals = tuple(replace(a, offset_s=a.offset_s / speed_up) for a in found.arrivals)
    return replace(found, arrivals=arrivals)


def parse(path: Path, lines: Iterable[str]) -> tuple[str, Iterator[tuple[int, Arrival]]]:
    """The format, and every row with its line number. Offsets are the file's own seconds, counted from
    whatever it counts from. Raises TraceError, also while the rows are read."""
    rest = iter(lines)
    number, first = 0, ""
    while not first.strip():
        number, first = number + 1, next(rest, "\x00")
    if first == "\x00":
        raise TraceError(f"the trace {path} is empty")
    if first.lstrip().startswith("{"):
        return "Mooncake", _rows(path, _json_rows(path, first, number, rest), _mooncake)
    names = [name.strip().lower() for name in next(csv.reader([first]))]
    if {"timestamp", "contexttokens", "generatedtokens"} <= {*names}:
        return "Azure", _rows(path, _csv_rows(path, names, number, rest), _azure)
    if {"timestamp", "request tokens", "response tokens"} <= {*names}:
        return "BurstGPT", _rows(path, _csv_rows(path, names, number, rest), _burstgpt)
    raise TraceError(
        f"{path}, line {number}: no trace that is known begins so: Mooncake's JSONL has an object with "
        "timestamp, input_length and output_length in each line, Azure's CSV the columns TIMESTAMP, "
        "ContextTokens and GeneratedTokens, BurstGPT's Timestamp, Request tokens and Response tokens"
    )


def _cut(
    path: Path,
    lines: Iterable[str],
    start_s: float,
    duration_s: float | None,
    requests: int | None,
    longest: int | None,
) -> Trace:
    name, rows = parse(path, lines)
    end_s = math.inf if duration_s is None else start_s + duration_s
    kept: list[Arrival] = []
    failed = too_long = 0
    zero_s: float | None = None
    for _, arrival in rows:
        zero_s = arrival.offset_s if zero_s is None else zero_s
        at_s = arrival.offset_s - zero_s
        if at_s > end_s + DISORDER_S:
            break
        if not start_s <= at_s < end_s:
            continue
        prompt, output = arrival.prompt_tokens or 0, arrival.output_tokens or 0
        if not prompt or not output:
            failed += 1
        elif longest is not None and prompt + output > longest:
            too_long += 1
        else:
            kept.append(replace(arrival, offset_s=at_s - start_s))
            if len(kept) == requests:
                last_s = start_s + max(a.offset_s for a in kept)
                end_s = min(end_s, math.nextafter(last_s, math.inf))  # rows that follow may come before it
    kept.sort(key=lambda a: a.offset_s)
    return Trace(name, tuple(kept[:requests]), failed, too_long)


def _rows(
    path: Path, rows: Iterable[tuple[int, Mapping[str, Any]]], read: Callable[[Mapping[str, Any]], Arrival]
) -> Iterator[tuple[int, Arrival]]:
    for number, row in rows:
        try:
            yield number, read(row)
        except ValueError as e:
            raise TraceError(f"{path}, line {number}: {e}") from None


def _json_rows(
    path: Path, first: str, number: int, rest: Iterator[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    line: str | None = first
    while line is not None:
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise TraceError(f"{path}, line {number}: not valid JSON ({e})") from None
            if not isinstance(row, dict):
                raise TraceError(f"{path}, line {number}: each line is an object")
            yield number, row
        line, number = next(rest, None), number + 1


def _csv_rows(
    path: Path, names: list[str], number: int, rest: Iterator[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.reader(rest)
    try:
        for values in reader:
            if not any(v.strip() for v in values):
                continue
            if len(values) < len(names):
                raise TraceError(
                    f"{path}, line {number + reader.line_num}: {len(values)} values for {len(names)} columns"
                )
            yield number + reader.line_num, dict(zip(names, values, strict=False))
    except csv.Error as e:
        raise TraceError(f"{path}, line {number + reader.line_num}: {e}") from None


def _mooncake(row: Mapping[str, Any]) -> Arrival:
    return Arrival(
        _seconds(row, "timestamp") / 1000, _tokens(row, "input_length"), _tokens(row, "output_length")
    )


def _azure(row: Mapping[str, Any]) -> Arrival:
    return Arrival(
        _moment(str(row["timestamp"])), _tokens(row, "contexttokens"), _tokens(row, "generatedtokens")
    )


def _burstgpt(row: Mapping[str, Any]) -> Arrival:
    session = str(row.get("session id") or "").strip() or None
    return Arrival(
        _seconds(row, "timestamp"),
        _tokens(row, "request tokens"),
        _tokens(row, "response tokens"),
        session,
    )


def _seconds(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    try:
        if isinstance(value, bool) or value is None:
            raise ValueError
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is a number, not {_shown(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is a number, not {_shown(value)}")
    return number


def _tokens(row: Mapping[str, Any], name: str) -> int:
    number = _seconds(row, name)
    if number < 0 or number != int(number) or number > 10_000_000:
        raise ValueError(f"{name} is a number of tokens, not {_shown(row.get(name))}")
    return int(number)


def _moment(text: str) -> float:
    """Seconds since 1970 of `2023-11-16 18:15:46.6805900` (UTC where no offset is named)."""
    found = _MOMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"TIMESTAMP is a moment like 2023-11-16 18:15:46.6805900, not {_shown(text)}")
    date, clock, fraction, offset = found.groups()
    try:
        moment = datetime.strptime(f"{date} {clock}", "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"TIMESTAMP is no moment that there is: {_shown(text)}") from None
    east_s = 0
    if offset and offset != "Z":
        digits = offset[1:].replace(":", "")
        east_s = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (1 if offset[0] == "+" else -1)
    return moment.timestamp() - east_s + (int(fraction) / 10 ** len(fraction) if fraction else 0.0)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
