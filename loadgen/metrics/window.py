"""Figures of the time in which an engine was measured: throughput, concurrency, Little's residual.

For one turn of length T, from just before its first request is sent to the end of its last response:

- throughput = tokens that arrived inside the turn / T. A request with events on both sides of an edge
  straddles it, and only the tokens of its events inside count; `straddling_share` is the part of all counted
  tokens that came from such requests. An event's tokens are event_tokens where the server told them, else
  output_tokens / text events of its request. Tokens of requests that failed later did arrive and count:
  `unsuccessful_share` says how much that was.
- concurrency = the sum over all requests of the time inside the turn that each was in flight / T. A request
  is in flight from `sent` to the end of its response (`complete_ms`, not `e2e_ms`: between the last token and
  the end of the response the server still holds it, and the user sends nothing else). Failed requests were in
  flight too.
- Little's residual = |concurrency - X R| / concurrency, with X = requests that left inside the turn / T and
  R their mean time in flight. From empty to empty it is 0 but for rounding: 0.1 % or more says that requests
  lie outside their turn, or that clocks disagree.
- requests_per_s = successful requests that ended inside the turn / T.

A turn of an open loop is measured from the end of its first successful response until the last request was
due (where that is half of the schedule or more): before, the engine fills up, and after, it drains, however
fast it is. Its Little's residual is of the whole turn, from empty to empty, as are sums for which that is
needed: `Totals.from_empty_to_empty`.

Over several turns: the sums of tokens, of time in flight and of requests, over the sum of lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadgen.metrics.columns import Columns, Ints
from loadgen.metrics.littles import residual
from loadgen.metrics.turns import Turn
from loadgen.record import OK

# A request's end was rounded on its way through milliseconds, and stamped by other code than the turn's.
SLACK_MS = 0.1


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over one turn, or several. Tokens are floats: a shared-out request may give a part of one."""

    seconds: float = 0.0
    tokens: float = 0.0
    straddling_tokens: float = 0.0
    unsuccessful_tokens: float = 0.0
    in_flight_s: float = 0.0
    departures: int = 0
    departed_s: float = 0.0
    ok: int = 0
    whole: Totals | None = None  # of an open loop: the whole turn's

    @property
    def from_empty_to_empty(self) -> Totals:
        return self.whole or self

    def figures(self) -> dict[str, float | None]:
        """The figures by their names in the JSON summary; None where there is nothing to divide by."""
        concurrency = _ratio(self.in_flight_s, self.seconds)
        little, all_of_it = None, self.from_empty_to_empty
        if all_of_it.in_flight_s > 0 and all_of_it.seconds > 0 and all_of_it.departures:
            little = residual(
                all_of_it.in_flight_s / all_of_it.seconds,
                all_of_it.departures / all_of_it.seconds,
                all_of_it.departed_s / all_of_it.departures,
            )
        return {
            "throughput_tokens_per_s": _ratio(self.tokens, self.seconds),
            "requests_per_s": _ratio(self.ok, self.seconds),
            "concurrency": concurrency,
            "littles_residual": little,
            "straddling_share": _ratio(self.straddling_tokens, self.tokens),
            "unsuccessful_share": _ratio(self.unsuccessful_tokens, self.tokens),
            "seconds": self.seconds,
            "tokens": self.tokens,
        }


def measure_turn(columns: Columns, turn: Turn) -> Totals:
    """The sums of one turn, from the records that belong to it."""
    return measure(columns, columns.of_turn(turn.turn), turn)


def measure(columns: Columns, picked: Ints, turn: Turn) -> Totals:
    """The sums of the picked rows of a turn."""
    whole = _inside(columns, picked, turn)
    served = served_window(columns, turn)
    return whole if served is turn else replace(_inside(columns, picked, served), whole=whole)


def served_window(columns: Columns, turn: Turn) -> Turn:
    """The part of an open loop's turn that is measured; all of a closed loop's."""
    if turn.schedule_s is None or turn.clock_stepped:
        return turn
    rows = columns.of_turn(turn.turn)
    rows = rows[columns.word["outcome"][rows] == OK]
    if not len(rows):
        return turn
    first_ms = float(((columns.whole["sent_ns"][rows] - turn.start_ns) / 1e6 + columns.gone_ms(rows)).min())
    start_s = (first_ms + 2 * SLACK_MS) / 1e3  # the first one itself is no part of it
    end_s = min(turn.schedule_s, turn.seconds)
    if end_s - start_s < turn.schedule_s / 2:
        return turn
    start_ns, end_ns = (turn.start_ns + round(s * 1e9) for s in (start_s, end_s))
    return replace(turn, start_ns=start_ns, end_ns=end_ns, seconds=end_s - start_s)


def _inside(columns: Columns, picked: Ints, window: Turn) -> Totals:
    """The sums of the picked rows inside a window."""
    # In milliseconds since the window's start: exact enough in a float64, which wall nanoseconds aren't.
    sent = (columns.whole["sent_ns"][picked] - window.start_ns) / 1e6
    time_in = columns.gone_ms(picked)
    gone = sent + time_in
    length = window.seconds * 1e3
    ok = columns.word["outcome"][picked] == OK
    tokens, straddles = _tokens_inside(columns, picked, sent, gone, length, window.clock_stepped)
    if window.clock_stepped:
        # Wall time can't place the requests, but a turn's own requests all lie in it.
        overlap, left = time_in, np.ones(len(picked), dtype=np.bool_)
    else:
        overlap = np.clip(np.minimum(gone, length) - np.maximum(sent, 0.0), 0.0, None)
        left = (gone >= 0.0) & (gone <= length + SLACK_MS)
    return Totals(
        seconds=window.seconds,
        tokens=math.fsum(tokens),
        straddling_tokens=math.fsum(tokens[straddles]),
        unsuccessful_tokens=math.fsum(tokens[~ok]),
        in_flight_s=math.fsum(overlap) / 1e3,
        departures=int(left.sum()),
        departed_s=math.fsum(time_in[left]) / 1e3,
        ok=int((left & ok).sum()),
    )


def total(parts: Iterable[Totals]) -> Totals:
    """The sum of several turns."""
    all_parts = list(parts)
    sums: dict[str, Any] = {
        name: math.fsum(getattr(p, name) for p in all_parts)
        for name in (
            "seconds",
            "tokens",
            "straddling_tokens",
            "unsuccessful_tokens",
            "in_flight_s",
            "departed_s",
        )
    }
    whole = None
    if any(p.whole for p in all_parts):
        whole = total(p.from_empty_to_empty for p in all_parts)
    departures, ok = sum(p.departures for p in all_parts), sum(p.ok for p in all_parts)
    return Totals(**sums, departures=departures, ok=ok, whole=whole)


def _tokens_inside(
    columns: Columns, picked: Any, sent: Any, gone: Any, length: float, everything: bool
) -> tuple[Any, Any]:
    """Tokens inside the window and whether the request straddles an edge, for each picked row."""
    tokens = columns.tokens[picked].copy()
    straddles = np.zeros(len(picked), dtype=np.bool_)
    if everything:
        return tokens, straddles
    for k in np.flatnonzero((sent < -SLACK_MS) | (gone > length + SLACK_MS)):
        i = picked[k]
        events = slice(int(columns.starts[i]), int(columns.starts[i + 1]))
        at = sent[k] + columns.event_us[events] / 1e3
        inside = (at >= -SLACK_MS) & (at <= length + SLACK_MS)
        if len(at) == 0:
            # Tokens without a text event (half a character): they came with the end of the response.
            tokens[k] *= 0.0 <= gone[k] <= length + SLACK_MS
        elif columns.event_tokens_known[i]:
            tokens[k] = float(columns.event_tokens[events][inside].sum())
        else:
            tokens[k] *= inside.sum() / len(at)
        straddles[k] = 0 < inside.sum() < len(at)
    return tokens, straddles


def _ratio(a: float, b: float) -> float | None:
    return a / b if b > 0 else None
