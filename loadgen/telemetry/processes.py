"""Which engine a process on a GPU belongs to: the one whose address it, or an ancestor, listens on."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from loadgen.telemetry.procfs import Endpoint, Process, ProcFs

LOOK_AGAIN_S = 5.0
FORGET_ABOVE = 1000

NOT_OURS = (
    "the processes on the GPUs are not to be seen from here: their memory is known, but not whose it is "
    "(in a container: start it with --pid=host, or run `loadgen telemetry --listen` on the host)"
)


class Owners:
    """Adds `name`, `port` and `engine` to the processes of samples, where they can be known.

    `engines` are (name, URL). Who a process is is looked up again every few seconds: its number may come back
    with another one behind it, and an engine may have been started anew.
    """

    def __init__(
        self,
        engines: Iterable[tuple[str, str]] = (),
        procfs: ProcFs | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._procfs = procfs or ProcFs()
        self._clock = clock
        self._engines = list(engines)
        self._engine_at: dict[Endpoint, str] = {}
        self._engine_at_until = -LOOK_AGAIN_S
        self._known: dict[int, tuple[float, Process | None]] = {}
        self._notes: list[str] = []
        self._said = False

    def __call__(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = [self._process(int(row["pid"])) for row in processes]
        if processes and not any(found) and not self._said:
            self._said = True
            self._notes.append(NOT_OURS)
        return [self._named(row, process) for row, process in zip(processes, found, strict=True)]

    def take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    def _named(self, row: dict[str, Any], process: Process | None) -> dict[str, Any]:
        if process is None:
            return row
        out = {**row, "name": process.name}
        if process.endpoints:
            names = {(n, e[1]) for e in process.endpoints if (n := self._engine_at.get(e))}
            if len(names) == 1:
                ((out["engine"], out["port"]),) = names
            else:
                out["port"] = min(port for _, port in process.endpoints)
        return out

    def _process(self, pid: int) -> Process | None:
        now = self._clock()
        known = self._known.get(pid)
        if known and now - known[0] < LOOK_AGAIN_S:
            return known[1]
        if now >= self._engine_at_until:
            self._engine_at_until = now + LOOK_AGAIN_S
            self._engine_at = engine_endpoints(
                self._engines, self._procfs.own_addresses(), self._procfs.published()
            )
        process = self._procfs.process(pid)
        if len(self._known) > FORGET_ABOVE:
            self._known.clear()
        self._known[pid] = (now, process)
        return process


def engine_endpoints(
    engines: Sequence[tuple[str, str]],
    own: set[str],
    published: Mapping[int, Endpoint],
    resolve: Callable[[str], set[str]] | None = None,
) -> dict[Endpoint, str]:
    """Where each engine listens: the addresses of its URL, on this machine all of this machine's, and the
    container's that Docker passes the port on to. An endpoint of two engines says nothing and is left out.
    """
    found: dict[Endpoint, set[str]] = {}
    for name, url in engines:
        host, port = host_and_port(url)
        addresses = (resolve or resolved)(host)
        ends = {(address, port) for address in addresses}
        if addresses & own:
            ends |= {(address, port) for address in own}
            if port in published:
                ends.add(published[port])
        for end in ends:
            found.setdefault(end, set()).add(name)
    return {end: names.pop() for end, names in found.items() if len(names) == 1}


def host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def resolved(host: str) -> set[str]:
    """The IP addresses of a name; none if it has none."""
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()


def name_by_port(processes: list[dict[str, Any]], engine_of: Mapping[int, str]) -> list[dict[str, Any]]:
    """Processes of another machine, which knows their ports but not what we call the engines there."""
    return [
        {**row, "engine": engine_of[row["port"]]} if row.get("port") in engine_of else row
        for row in processes
    ]
