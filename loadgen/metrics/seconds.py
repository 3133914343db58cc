"""The exact figures of a window, second by second: what the live counts are replaced with.

One second of a turn has the tokens whose events came in it, the time-average of requests in flight, and the
requests that ended in it. The rules are those of metrics/window.py, so that over a turn the seconds add up
to its figures: sum(tokens) / sum(measured_s) is its throughput, sum(in_flight) / sum(measured_s) its
concurrency, sum(completions) / sum(measured_s) its requests per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from loadgen.metrics.columns import Bools, Columns, Floats, Ints
from loadgen.metrics.turns import Turn
from loadgen.metrics.window import SLACK_MS
from loadgen.record import FAILED, OK

SECOND_NS = 10**9
CHUNK_EVENTS = 2**20
# A longer window is no turn but the mark of a clock that was set, or of a damaged row.
LONGEST_S = 30 * 86_400


@dataclass(frozen=True, slots=True)
class Seconds:
    """Columns, one row a second; the first begins at `start_ns` (wall).

    `measured_s`: how much of the second lay inside the window (0 to 1). `in_flight`: request-seconds in it,
    which is the average over the second. `completions`: successful requests that ended in it; `failures`:
    failed ones. `ttft_sum_ms` is of the `first_tokens` successful requests whose first token came in it.
    """

    start_ns: int
    measured_s: Floats
    tokens: Floats
    in_flight: Floats
    completions: Ints
    failures: Ints
    first_tokens: Ints
    ttft_sum_ms: Floats

    def __len__(self) -> int:
        return len(self.tokens)


def by_second(columns: Columns, rows: Bools, window: Turn, origin_ns: int | None = None) -> Seconds:
    """The picked rows inside a window, second by second.

    Seconds are whole seconds of wall time, or count from `origin_ns` (at most a second before the window):
    a turn's own start makes seconds of the turn. A window that is empty, or longer than LONGEST_S, has none.
    """
    if origin_ns is None:
        origin_ns = window.start_ns // SECOND_NS * SECOND_NS
    length_ns = round(window.seconds * 1e9)
    offset_ns = window.start_ns - origin_ns
    if not 0 < length_ns <= LONGEST_S * SECOND_NS:
        return Seconds(origin_ns, *_zeros(0))
    n = -(-(offset_ns + length_ns) // SECOND_NS)
    measured, tokens, in_flight, completions, failures, first_tokens, ttft_sum = _zeros(n)
    edges = np.clip(np.arange(n + 1) * SECOND_NS, offset_ns, offset_ns + length_ns)
    measured += np.diff(edges) / 1e9
    at = _place(columns, np.flatnonzero(rows), window, length_ns)

    def second(at_ns: Any) -> Any:
        """Which second, of nanoseconds since the window's start; what is outside counts at the edge."""
        return np.clip((at_ns + offset_ns) // SECOND_NS, 0, n - 1)

    def count(at_ns: Any) -> Ints:
        return np.bincount(second(at_ns), minlength=n).astype(np.int64)

    def add(at_ns: Any, values: Any) -> Floats:
        return np.bincount(second(at_ns), weights=values, minlength=n).astype(np.float64)

    _add_time(in_flight, *(np.clip(t, 0, length_ns) + offset_ns for t in (at.sent_ns, at.gone_ns)))
    ok = columns.word["outcome"][at.picked] == OK
    failed = columns.word["outcome"][at.picked] == FAILED
    completions += count(at.gone_ns[at.left & ok])
    never_sent = columns.whole["sent_ns"][at.picked] <= 0  # it found no server: its line was written then
    ended_ns = np.where(never_sent, columns.whole["point_ns"][at.picked] - window.start_ns, at.gone_ns)
    failures += count(ended_ns[failed])

    ttft = columns.number["ttft_ms"][at.picked]
    first_ns = at.sent_ns + np.round(np.nan_to_num(ttft) * 1e6).astype(np.int64)
    first = ok & np.isfinite(ttft) & (at.whole | ((first_ns >= 0) & (first_ns <= length_ns)))
    first_tokens += count(first_ns[first])
    ttft_sum += add(first_ns[first], ttft[first])

    counts = np.diff(columns.starts)[at.picked]
    silent = (counts == 0) & (at.whole | at.left)  # tokens without a text event came with the response's end
    tokens += add(at.gone_ns[silent], columns.tokens[at.picked][silent])
    for chunk in _chunks(counts):
        quick = at.whole[chunk] & _in_order(columns, at.picked[chunk])
        part = np.flatnonzero(quick) + chunk.start
        tokens += _tokens_of_whole(columns, at.picked[part], at.sent_ns[part] + offset_ns, n)
        part = np.flatnonzero(~quick) + chunk.start
        event_ns, each, owner = _events(columns, at.picked[part], at.sent_ns[part])
        sent_ns = at.sent_ns[part][owner]
        ms = sent_ns / 1e6 + (event_ns - sent_ns) / 1e6
        inside = at.whole[part][owner] | ((ms >= -SLACK_MS) & (ms <= window.seconds * 1e3 + SLACK_MS))
        tokens += add(event_ns[inside], each[inside])
    return Seconds(origin_ns, measured, tokens, in_flight, completions, failures, first_tokens, ttft_sum)


class _Placed(NamedTuple):
    """Requests of a window, in nanoseconds since its start. `left`: they ended in it; `whole`: they lie in it
    from beginning to end."""

    picked: Ints
    sent_ns: Ints
    gone_ns: Ints
    left: Bools
    whole: Bools


def _place(columns: Columns, picked: Ints, window: Turn, length_ns: int) -> _Placed:
    time_in = columns.gone_ms(picked)
    time_in_ns = np.maximum(np.round(time_in * 1e6), 0.0).astype(np.int64)
    sent_ns = columns.whole["sent_ns"][picked] - window.start_ns
    if window.clock_stepped:
        # Wall time can't place the requests, but all of them lie in the turn: as near as they can.
        sent_ns = np.clip(sent_ns, 0, np.maximum(length_ns - time_in_ns, 0))
        everything = np.ones(len(picked), dtype=np.bool_)
        return _Placed(picked, sent_ns, sent_ns + time_in_ns, everything, everything)
    # In the floats of window.py: nothing may fall on one side of an edge here, on the other there.
    gone = sent_ns / 1e6 + time_in
    before_end = gone <= window.seconds * 1e3 + SLACK_MS
    left, whole = (gone >= 0.0) & before_end, (sent_ns / 1e6 >= -SLACK_MS) & before_end
    return _Placed(picked, sent_ns, sent_ns + time_in_ns, left, whole)


def _zeros(n: int) -> tuple[Any, ...]:
    return tuple(np.zeros(n, dtype=t) for t in ("f8", "f8", "f8", "i8", "i8", "i8", "f8"))


def _add_time(in_flight: Floats, start_ns: Ints, end_ns: Ints) -> None:
    """Add to every second how long each of the spans lies in it."""
    last = len(in_flight) - 1
    a, b = np.minimum(start_ns // SECOND_NS, last), np.minimum(end_ns // SECOND_NS, last)
    whole = np.zeros(len(in_flight) + 1, dtype=np.int64)
    # A span counts fully from its first second on, and not at all from its last one on ...
    np.add.at(whole, a, 1)
    np.add.at(whole, b, -1)
    in_flight += np.cumsum(whole[:-1])
    # ... but for what it lacks of the first, and has of the last.
    in_flight -= np.bincount(a, weights=(start_ns - a * SECOND_NS) / 1e9, minlength=last + 1)
    in_flight += np.bincount(b, weights=(end_ns - b * SECOND_NS) / 1e9, minlength=last + 1)
    np.maximum(in_flight, 0.0, out=in_flight)


def _in_order(columns: Columns, picked: Ints) -> Bools:
    """Whose events are in the order of time: everybody's, but in a damaged journal."""
    if not len(picked):
        return np.ones(0, dtype=np.bool_)
    first, last = int(columns.starts[picked].min()), int(columns.starts[picked + 1].max())
    times = columns.event_us[first:last]
    back = np.flatnonzero(times[1:] < times[:-1]) + first + 1
    disorder = back[~np.isin(back, columns.starts[picked])]
    rows = np.searchsorted(columns.starts, disorder, side="right") - 1
    return ~np.isin(picked, rows)


def _tokens_of_whole(columns: Columns, picked: Ints, sent_ns: Ints, n: int) -> Floats:
    """The tokens in each of the seconds, of rows whose events are in order and all inside. `sent_ns` counts
    from the first second's start. Events are not looked at one by one: in each row it is searched for the
    first event of every second."""
    out = np.zeros(n)
    begin, end = columns.starts[picked], columns.starts[picked + 1]
    picked, sent_ns, begin, end = (v[end > begin] for v in (picked, sent_ns, begin, end))
    if not len(picked):
        return out
    first, last = (
        np.clip((sent_ns + columns.event_us[at].astype(np.int64) * 1000) // SECOND_NS, 0, n - 1)
        for at in (begin, end - 1)
    )
    crossed = last - first
    owner = np.repeat(np.arange(len(picked)), crossed)
    edge = np.arange(len(owner)) - np.repeat(np.cumsum(crossed) - crossed, crossed) + first[owner] + 1
    # Of each row and edge between two seconds: the first event that is not before it.
    wanted_us = -(-(edge * SECOND_NS - sent_ns[owner]) // 1000)
    low, high = begin[owner], end[owner]
    while (low < high).any():
        middle = (low + high) // 2
        before = columns.event_us[np.minimum(middle, high - 1)] < wanted_us
        open_ = low < high
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    cut = np.concatenate((low, end))  # where the part of a second ends, and of which row and second it is
    row = np.concatenate((owner, np.arange(len(picked))))
    second = np.concatenate((edge - 1, last))
    order = np.lexsort((second, row))
    cut, row, second = cut[order], row[order], second[order]
    start = np.concatenate(([0], cut[:-1]))
    begins = np.diff(row, prepend=-1) > 0
    start[begins] = begin[row[begins]]
    share = columns.tokens[picked] / (end - begin)
    carried = (cut - start) * share[row]
    known = columns.event_tokens_known[picked][row]
    if known.any():
        carried[known] = _carried(columns, start[known], cut[known])
    out += np.bincount(second, weights=carried, minlength=n)
    return out


def _carried(columns: Columns, start: Ints, end: Ints) -> Floats:
    """The tokens of the events from `start` up to `end`, of each pair."""
    if columns.event_tokens.strides == (0,):  # all of them carry as many
        return (end - start).astype(np.float64) * float(columns.event_tokens[0])
    low, high = int(start.min()), int(end.max())
    upto = np.concatenate(([0], np.cumsum(columns.event_tokens[low:high], dtype=np.int64)))
    return (upto[end - low] - upto[start - low]).astype(np.float64)


def _chunks(counts: Ints) -> Iterator[slice]:
    """Slices of rows with about CHUNK_EVENTS events each, so that memory doesn't grow with the run."""
    total = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        before = int(total[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(total, before + CHUNK_EVENTS, side="right")), begin + 1)
        yield slice(begin, end)
        begin = end


def _events(columns: Columns, picked: Ints, sent_ns: Ints) -> tuple[Ints, Floats, Ints]:
    """All events of the rows: their time, their tokens, and which of the rows each belongs to."""
    counts = np.diff(columns.starts)[picked]
    owner = np.repeat(np.arange(len(picked)), counts)
    index: Ints | slice
    if len(picked) and picked[-1] - picked[0] + 1 == len(picked):  # as nearly always: rows lie turn by turn
        index = slice(int(columns.starts[picked[0]]), int(columns.starts[picked[-1] + 1]))
    else:
        first = np.cumsum(counts) - counts
        index = np.arange(int(counts.sum())) - first[owner] + columns.starts[:-1][picked][owner]
    at_ns = columns.event_us[index].astype(np.int64)
    at_ns *= 1000
    at_ns += np.repeat(sent_ns, counts)
    known = columns.event_tokens_known[picked]
    share = np.repeat(columns.tokens[picked] / np.maximum(counts, 1), counts)
    if not known.any():
        return at_ns, share, owner
    each = np.where(np.repeat(known, counts), columns.event_tokens[index], share)
    return at_ns, each, owner
