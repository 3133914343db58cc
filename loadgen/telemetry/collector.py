"""Agents' samples into the run's own gpu.jsonl, on this machine's clock."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from loadgen.telemetry.clockoffset import ClockOffset
from loadgen.telemetry.foreign import LATEST_NS, foreign_row
from loadgen.telemetry.output import Write
from loadgen.telemetry.polling import Polled, PollError
from loadgen.telemetry.processes import host_and_port, name_by_port, resolved


class AgentCollector(Polled):
    """Asks one agent (see agent.py) for what is new since the last time.

    `t_ns` of its rows is corrected by the difference of the two wall clocks, which is noted where it matters.
    `engines` are (name, URL): processes there that listen on the port of an engine with the agent's host are
    that engine's.
    """

    def __init__(
        self,
        url: str,
        token: str,
        host: str,
        interval_s: float,
        write: Write,
        engines: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(url, host, interval_s, write)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._where: dict[str, str] = {}
        self._clock = ClockOffset()
        self._clock_noted = False
        self._odd_noted = False
        self._engine_of = _engines_at(url, engines)

    def poll(self) -> None:
        sent_ns, mono_ns = time.time_ns(), time.monotonic_ns()
        body = self.get(f"{self.url}/v1/rows", self._headers, self._where)
        received_ns = sent_ns + time.monotonic_ns() - mono_ns
        try:
            answer = orjson.loads(body)
            theirs_ns = int(answer["now_ns"])
            where = {"since": str(int(answer["next"])), "agent": str(answer["agent"])}
            sent = [*answer["facts"], *answer["rows"]]
            missed = int(answer["missed"])
            if not 0 < theirs_ns < LATEST_NS:
                raise ValueError
        except (ValueError, KeyError, TypeError, OverflowError):
            raise PollError(f"{self.url} is no telemetry agent: its answer makes no sense") from None
        if self._where and where["agent"] != self._where["agent"]:
            self.note(f"the agent at {self.url} was started anew: its samples have a gap here")
        if missed:
            self.note(f"{missed} rows of {self.url} are lost: it was not asked for too long")
        self._look_at_clock(sent_ns, received_ns, theirs_ns)
        self._where = where
        rows = [row for row in map(foreign_row, sent) if row is not None]
        if len(rows) < len(sent) and not self._odd_noted:
            self._odd_noted = True
            self.note(f"{self.url} sends rows that make no sense, which are left out: is it of this version?")
        for row in rows:
            self.keep(self._ours(row))

    def _ours(self, row: dict[str, Any]) -> dict[str, Any]:
        out = {**row, "t_ns": self._clock.ours(row["t_ns"])}
        if self._engine_of and "processes" in row:
            out["processes"] = name_by_port(row["processes"], self._engine_of)
        return out

    def _look_at_clock(self, sent_ns: int, received_ns: int, theirs_ns: int) -> None:
        stepped = self._clock.add(sent_ns, received_ns, theirs_ns)
        if not (self._clock.matters and not self._clock_noted) and not stepped:
            return
        self._clock_noted = True
        ahead_s = self._clock.offset_ns / 1e9
        said = "was set: it now is" if stepped else "is"
        self.note(
            f"the clock of {self.url} {said} {abs(ahead_s):.3f} s {'ahead of' if ahead_s > 0 else 'behind'} "
            f"this machine's (to {self._clock.error_ns / 1e6:.1f} ms); its samples' times are corrected"
        )


def _engines_at(url: str, engines: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Engines on the agent's machine, by port."""
    agent = urlsplit(url).hostname or ""
    addresses = {agent, *resolved(agent)}
    return {
        port: name
        for name, (host, port) in ((name, host_and_port(engine)) for name, engine in engines)
        if addresses & {host, *resolved(host)}
    }
