"""Columns: the records of one engine as numpy columns, compact enough for tens of millions of events."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from loadgen.record import WARMUP

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NUMBERS = (
    "headers_ms",
    "first_event_ms",
    "ttft_ms",
    "ttfa_ms",
    "e2e_ms",
    "complete_ms",
    "tpot_ms",
    "connect_ms",
    "send_lag_ms",
    "read_lag_ms",
    "prompt_tokens",
    "output_tokens",
    "asked_output_tokens",
    "cached_tokens",
    "first_event_error_ms",
    "ttft_error_ms",
    "ttfa_error_ms",
    "e2e_error_ms",
    "coalesced_events",
    "replica",
)
# From `sent` on, so never negative; and nothing is larger than LARGEST (as milliseconds: 31 years).
SINCE_SENT = ("headers_ms", "first_event_ms", "ttft_ms", "ttfa_ms", "e2e_ms", "complete_ms", "tpot_ms")
LARGEST = 1e12
WHOLE = ("sent_ns", "point_ns", "turn", "block")
WORDS = ("outcome", "phase", "error", "token_source", "clock", "worker", "traffic_class")
FLAGS = ("short_answer", "clock_step")
DEFAULT_WORDS = {"outcome": "ok", "phase": "measure", "worker": "local"}


@dataclass
class Columns:
    """One row a request; events lie flat, those of row i in `event_us[starts[i]:starts[i + 1]]`.

    `number[name]` are float64 with NaN for None. `scheduled_lag_ms` is sent - scheduled. `tokens` is the
    number of tokens that a row's stream carried: the sum of its event_tokens where they are known
    (`event_tokens_known`), else its output_tokens, else one a text event.
    """

    number: dict[str, Floats]
    whole: dict[str, Ints]
    word: dict[str, npt.NDArray[np.object_]]
    flag: dict[str, Bools]
    scheduled_lag_ms: Floats
    tokens: Floats
    event_tokens_known: Bools
    starts: Ints
    event_us: npt.NDArray[Any]
    event_tokens: npt.NDArray[Any]

    def __len__(self) -> int:
        return len(self.tokens)

    def picked(self, rows: Bools) -> Columns:
        """The rows of the mask alone."""
        counts = np.diff(self.starts)
        events = np.repeat(rows, counts)
        return Columns(
            number={name: values[rows] for name, values in self.number.items()},
            whole={name: values[rows] for name, values in self.whole.items()},
            word={name: values[rows] for name, values in self.word.items()},
            flag={name: values[rows] for name, values in self.flag.items()},
            scheduled_lag_ms=self.scheduled_lag_ms[rows],
            tokens=self.tokens[rows],
            event_tokens_known=self.event_tokens_known[rows],
            starts=np.concatenate(([0], np.cumsum(counts[rows]))),
            event_us=self.event_us[events],
            event_tokens=self.event_tokens[events],
        )

    def gone_ms(self, picked: Ints | slice = slice(None)) -> Floats:
        """From `sent` until the (picked) request had left the system: the end of its response
        (`complete_ms`); where that is missing, the last that was seen of it."""
        gone: Floats = self.number["complete_ms"][picked].copy()
        for name in ("e2e_ms", "first_event_ms", "headers_ms"):
            missing = np.isnan(gone)
            if not missing.any():
                break
            gone[missing] = self.number[name][picked][missing]
        gone[np.isnan(gone)] = 0.0
        return gone

    def of_turn(self, turn: int) -> Ints:
        """The rows of a turn's requests, warm-up left out, in ascending order. A run has hundreds of turns
        at times: its rows are sorted by turn once."""
        rows, numbers = self._by_turn
        return rows[np.searchsorted(numbers, turn) : np.searchsorted(numbers, turn, side="right")]

    @cached_property
    def _by_turn(self) -> tuple[Ints, Ints]:
        rows = np.flatnonzero(self.word["phase"] != WARMUP)
        numbers = self.whole["turn"][rows]
        order = np.argsort(numbers, kind="stable")
        return rows[order], numbers[order]


@dataclass
class ColumnBuilder:
    """Takes journal rows one by one. Rows are dicts as RequestRecord.to_json wrote them."""

    _number: dict[str, array[float]] = field(default_factory=lambda: {n: array("d") for n in NUMBERS})
    _whole: dict[str, array[int]] = field(default_factory=lambda: {n: array("q") for n in WHOLE})
    _word: dict[str, array[int]] = field(default_factory=lambda: {n: array("i") for n in WORDS})
    _flag: dict[str, array[int]] = field(default_factory=lambda: {n: array("b") for n in FLAGS})
    _codes: dict[str | None, int] = field(default_factory=lambda: {None: 0})
    _lag: array[float] = field(default_factory=lambda: array("d"))
    _tokens: array[float] = field(default_factory=lambda: array("d"))
    _known: array[int] = field(default_factory=lambda: array("b"))
    _starts: array[int] = field(default_factory=lambda: array("q", [0]))
    _event_us: array[int] = field(default_factory=lambda: array("I"))
    _event_tokens: array[int] = field(default_factory=lambda: array("H"))

    def __len__(self) -> int:
        return len(self._tokens)

    def add(self, row: Mapping[str, Any]) -> None:
        """One request. Raises TypeError or ValueError, and adds nothing, if a value is of the wrong type."""
        numbers = [_number(row, name) for name in NUMBERS]
        whole = [_whole(row, name) for name in WHOLE]
        words = [_word(row, name) for name in WORDS]
        scheduled = row.get("scheduled_ns")
        lag = float("nan") if scheduled is None else (whole[0] - scheduled) / 1e6
        events = row.get("event_us") or []
        per_event = row.get("event_tokens")
        events_typecode, event_values = _packed(events, self._event_us.typecode)
        known = per_event is not None and len(per_event) == len(events) and len(events) > 0
        tokens_typecode, token_values = _packed(
            per_event if known and per_event is not None else [0] * len(events), self._event_tokens.typecode
        )

        # Nothing below can fail: a row is in whole, or not at all.
        if events_typecode != self._event_us.typecode:
            self._event_us = array(events_typecode, self._event_us)
        if tokens_typecode != self._event_tokens.typecode:
            self._event_tokens = array(tokens_typecode, self._event_tokens)
        self._event_us.extend(event_values)
        self._event_tokens.extend(token_values)
        self._starts.append(len(self._event_us))
        output = row.get("output_tokens")
        self._tokens.append(sum(token_values) if known else len(events) if output is None else output)
        self._known.append(known)
        self._lag.append(lag)
        for column, value in zip(self._number.values(), numbers, strict=True):
            column.append(value)
        for ints, integer in zip(self._whole.values(), whole, strict=True):
            ints.append(integer)
        for codes, word in zip(self._word.values(), words, strict=True):
            codes.append(self._codes.setdefault(word, len(self._codes)))
        for name, flags in self._flag.items():
            flags.append(bool(row.get(name)))

    def build(self) -> Columns:
        """The columns of all rows so far. The builder must not be used afterwards."""
        names = np.array(list(self._codes), dtype=object)
        return Columns(
            number={
                n: np.frombuffer(a, dtype=np.float64) if a else np.empty(0) for n, a in self._number.items()
            },
            whole={n: np.array(a, dtype=np.int64) for n, a in self._whole.items()},
            word={n: names[np.array(a, dtype=np.int32)] for n, a in self._word.items()},
            flag={n: np.array(a, dtype=np.bool_) for n, a in self._flag.items()},
            scheduled_lag_ms=np.array(self._lag, dtype=np.float64),
            tokens=np.array(self._tokens, dtype=np.float64),
            event_tokens_known=np.array(self._known, dtype=np.bool_),
            starts=np.array(self._starts, dtype=np.int64),
            event_us=_view(self._event_us),
            event_tokens=_view(self._event_tokens),
        )


def _view(values: array[int]) -> npt.NDArray[Any]:
    if not values:
        return np.empty(0, dtype=np.int64)
    return np.frombuffer(values, dtype=f"{'i' if values.typecode == 'q' else 'u'}{values.itemsize}")


def _packed(values: list[int], typecode: str) -> tuple[str, array[int]]:
    """The values as an array of the type, or of 64 bits where they don't fit (a stream of 72 minutes). Raises
    ValueError of a negative one."""
    try:
        packed = array(typecode, values)
    except OverflowError:
        packed = array("q", values)
    if packed.typecode == "q" and min(packed, default=0) < 0:
        raise ValueError("a time or number of tokens is negative")
    return packed.typecode, packed


def _number(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name)
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} is not a number")
    if not abs(value) <= LARGEST or (value < 0 and name in SINCE_SENT):
        raise ValueError(f"{name} cannot be {value}")
    return float(value)


def _whole(row: Mapping[str, Any], name: str) -> int:
    value = row.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is not a whole number")
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{name} does not fit 64 bits")
    return value


def _word(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name, DEFAULT_WORDS.get(name))
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} is not a text")
    return value
