"""A dcgm-exporter as a source of GPU rows."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from loadgen.telemetry.dcgm import parse
from loadgen.telemetry.output import Write
from loadgen.telemetry.polling import Polled, PollError

REPEAT_S = 10.0


class DcgmExporter(Polled):
    """Polls one exporter's /metrics.

    An exporter renews its figures at a beat of its own, by default every 30 seconds. A sample that says what
    the last one said is left out (but for one in ten seconds), as it is no new one; and a beat much slower
    than ours is noted, once.
    """

    def __init__(self, url: str, host: str, interval_s: float, write: Write) -> None:
        at = url if urlsplit(url).path else f"{url}/metrics"
        super().__init__(at, host, interval_s, write)
        self._host_of_url = urlsplit(url).hostname or url
        self._said: dict[tuple[Any, ...], tuple[dict[str, Any], float]] = {}
        self._changes: list[float] = []
        self._slow_noted = False

    def poll(self) -> None:
        t_ns = time.time_ns()
        text = self.get(self.url, {}, {}).decode("utf-8", "replace")
        facts, found = parse(text, t_ns, self._host_of_url)
        if not found:
            raise PollError(f"{self.url} has no DCGM_FI_ figures of a GPU")
        self.take(facts, found, time.monotonic())

    def take(self, facts: list[dict[str, Any]], found: list[dict[str, Any]], now: float) -> None:
        for row in facts:
            self.keep(row)
        changed = False
        for row in found:
            key = (row["host"], row["gpu"], row.get("mig_instance"))
            values = {k: v for k, v in row.items() if k != "t_ns"}
            before = self._said.get(key)
            if before and before[0] == values and now - before[1] < REPEAT_S:
                continue
            changed = changed or not before or before[0] != values
            self._said[key] = (values, now)
            self.keep(row)
        if changed:
            self._look_at_beat(now)

    def _look_at_beat(self, now: float) -> None:
        self._changes = [*self._changes[-2:], now]
        if len(self._changes) < 3 or self._slow_noted:
            return
        beat_s = (self._changes[-1] - self._changes[0]) / 2
        if beat_s > max(2.5, 2.5 * self._interval_s):
            self._slow_noted = True
            self.note(
                f"{self.url} renews its figures only every {beat_s:.0f} s or so: start dcgm-exporter with "
                "--collect-interval 1000 (milliseconds)"
            )
