"""What a person sees while a run goes on: one line, renewed on a terminal, every ten seconds elsewhere."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import logging
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

import gevent

from loadgen.plain import plural
from loadgen.users.director import Director

TTY_S = 0.5
PLAIN_S = 10.0


class Progress:
    """Prints the director's state to stderr; whatever goes wrong in here is none of the run's business.

    `live_events` gives the raw events read so far from an engine (provisional, not yet parsed).
    """

    def __init__(
        self, director: Director, live_events: Callable[[str], int] | None, out: TextIO | None = None
    ) -> None:
        self._director = director
        self._live = live_events
        self._out = out or sys.stderr
        self._tty = _is_tty(self._out)
        self._shown = False
        self._rate: tuple[str, float, int] | None = None
        self._last = ""
        self._filter = _ClearFirst(self)
        self._greenlet = gevent.spawn(self._main)
        if self._tty:
            for handler in _console_handlers():
                handler.addFilter(self._filter)

    def stop(self) -> None:
        self._greenlet.kill()
        self.clear()
        for handler in _console_handlers():
            handler.removeFilter(self._filter)

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._shown:
            with contextlib.suppress(Exception):
                self._out.write("\r\x1b[K")
                self._out.flush()
            self._shown = False

    def _main(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                self._show()
            gevent.sleep(TTY_S if self._tty else PLAIN_S)

    def _show(self) -> None:
        text = self.line()
        if self._tty:
            width = shutil.get_terminal_size().columns - 1
            self._out.write(f"\r\x1b[K{text[:width]}")
            self._shown = True
        elif text != self._last:
            self._out.write(f"{text}\n")
        self._last = text
        self._out.flush()

    def line(self) -> str:
        """`block 2 of 6, vllm, 37/64 done, 381 tok/s, TTFT 184 ms so far, 4 min left`."""
        d = self._director
        settings = d.run.settings
        parts = [f"block {min(d.block + 1, settings.blocks)} of {settings.blocks}"]
        if d.active:
            for turn, batch in d.active:
                if batch.source is not None:
                    users = plural(len(batch.members), "user")
                    parts.append(f"{turn.engine}, {users}, {batch.finished} done")
                else:
                    parts.append(f"{turn.engine}, {batch.finished}/{batch.total} done")
                if batch.failed:
                    parts.append(f"{batch.failed} failed")
                if batch.late:
                    parts.append(f"{batch.late} sent late")
                if batch.dropped:
                    parts.append(f"{batch.dropped} dropped")
                if (rate := self._tokens_per_s(turn.engine)) is not None:
                    parts.append(f"{rate:.0f} tok/s")
                if batch.ttfts_ms:
                    parts.append(f"TTFT {_ms(statistics.median(batch.ttfts_ms))} so far")
        else:
            parts.append(d.stage)
        left = time_left_s(d)
        if left is not None:
            parts.append(f"{_duration(left)} left")
        return ", ".join(parts)

    def _tokens_per_s(self, engine: str) -> float | None:
        """Events read since the line before: tokens, nearly, and at once."""
        if self._live is None:
            return None
        now, events = time.monotonic(), self._live(engine)
        before, self._rate = self._rate, (engine, now, events)
        if before is None or before[0] != engine or now - before[1] < 0.2:
            return None
        return max(0, events - before[2]) / (now - before[1])


def time_left_s(d: Director) -> float | None:
    """Seconds until the last turn ends, as the turns so far let expect; None while nothing is known."""
    if (shape := d.run.settings.course) is not None:
        return None if shape.seconds is None else _shape_left_s(d, shape.seconds)
    known = d.turn_seconds
    running = 0.0
    if d.active:
        elapsed = time.monotonic() - d.stage_start
        done = sum(b.finished for _, b in d.active) / max(1, sum(b.total for _, b in d.active))
        if done >= 0.2:
            running = elapsed / done
        elif not known:
            return None
    elif not known:
        return None
    average = statistics.fmean([running] if not known else [s for v in known.values() for s in v])
    total = 0.0
    for number, turns in enumerate(d.rounds[d.rounds_done :]):
        expected = max(statistics.fmean(known[t.engine]) if t.engine in known else average for t in turns)
        if number == 0 and d.active:
            expected = running or expected
            total += max(0.0, expected - (time.monotonic() - d.stage_start))
        else:
            total += expected + d.run.settings.cooldown_s
    return total


def _shape_left_s(d: Director, seconds: float) -> float:
    """Of a shape that is known beforehand; what is in flight at a turn's end comes on top."""
    rounds = len(d.rounds) - d.rounds_done
    elapsed = time.monotonic() - d.stage_start if d.active else 0.0
    return max(0.0, rounds * seconds + max(0, rounds - 1) * d.run.settings.cooldown_s - elapsed)


def _ms(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def _is_tty(out: TextIO) -> bool:
    try:
        return out.isatty()
    except ValueError:
        return False


def _console_handlers() -> list[logging.Handler]:
    loggers = [logging.getLogger(n) for n in (None, "locust", "locust.stats_logger", "loadgen")]
    return [
        h
        for h in dict.fromkeys(h for logger in loggers for h in logger.handlers)
        if isinstance(h, logging.StreamHandler) and not isinstance(h, logging.FileHandler)
    ]


class _ClearFirst(logging.Filter):
    """Clears the line before a log record is printed over it."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress

    def filter(self, record: Any) -> bool:
        self._progress.clear()
        return True
