"""Which engine a process on a GPU belongs to: who listens on the engine's port, and its descendants.

NVML names processes by number. In a container with process numbers of its own those may be the host's, and
then they mean nothing here, or, worse, somebody else. So outside the machine's first PID namespace a number
counts only if that process has the GPU open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

HOST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO in the kernel's proc_ns.h
LOOK_AGAIN_S = 5.0

NOT_OURS = (
    "the processes on the GPUs are not among this container's: their memory is known, their engines are not "
    "(start the container with --pid=host, or run `loadgen telemetry --listen` on the host)"
)


@dataclass(frozen=True)
class Process:
    """What is known of a process. `ports`: the TCP ports on which it, or an ancestor, listens."""

    name: str
    ports: frozenset[int] = frozenset()


@dataclass
class Owners:
    """Adds `name`, `engine` and `port` to the processes of samples.

    `engines` are (name, URL); only those on this machine can own a process here. `look` finds a process by
    its number, None if there is none that can be meant. Looked up again every few seconds, as a number may
    come back with another process behind it.
    """

    engines: Iterable[tuple[str, str]] = ()
    look: Callable[[int], Process | None] = field(default_factory=lambda: Looker().look)
    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    _known: dict[int, tuple[float, Process | None]] = field(default_factory=dict)
    _said: bool = False

    def __post_init__(self) -> None:
        self._port_of = local_ports(self.engines)

    def __call__(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = [self._of(int(row["pid"])) for row in processes]
        if processes and not any(found) and not self._said:
            self._said = True
            self.notes.append(NOT_OURS)
        return [self._with(row, process) for row, process in zip(processes, found, strict=True)]

    def take_notes(self) -> list[str]:
        notes, self.notes = self.notes, []
        return notes

    def _with(self, row: dict[str, Any], process: Process | None) -> dict[str, Any]:
        if process is None:
            return row
        out = {**row, "name": process.name}
        for port in sorted(process.ports):
            out.setdefault("port", port)
            if port in self._port_of:
                return {**out, "port": port, "engine": self._port_of[port]}
        return out

    def _of(self, pid: int) -> Process | None:
        now = self.clock()
        known = self._known.get(pid)
        if known and now - known[0] < LOOK_AGAIN_S:
            return known[1]
        process = self.look(pid)
        if len(self._known) > 1000:
            self._known.clear()
        self._known[pid] = (now, process)
        return process


def local_ports(engines: Iterable[tuple[str, str]]) -> dict[int, str]:
    """The engine on each port of this machine; a port that two of them name tells nothing."""
    found: dict[int, str] = {}
    twice = set()
    for name, url in engines:
        parts = urlsplit(url)
        if not is_here(parts.hostname or ""):
            continue
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if port in found:
            twice.add(port)
        found[port] = name
    return {port: name for port, name in found.items() if port not in twice}


def is_here(host: str) -> bool:
    """Whether an address is this machine's own. Names are resolved, once."""
    if host in ("localhost", "127.0.0.1", "::1"):
        return True
    try:
        meant = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return False
    own = {a.address.partition("%")[0] for addresses in psutil.net_if_addrs().values() for a in addresses}
    return any(str(a).startswith("127.") or a in own for a in meant)


@dataclass
class Looker:
    """Finds processes in /proc. `proc` is that folder."""

    proc: Path = Path("/proc")

    def look(self, pid: int) -> Process | None:
        here = self.proc / str(pid)
        try:
            name = (here / "comm").read_text(errors="replace").strip()
        except OSError:
            return None
        if not self._host_numbers() and not self._has_gpu_open(here):
            return None
        ports: set[int] = set()
        for one in [pid, *self._ancestors(pid)]:
            ports |= self._listens(one)
        return Process(self._better_name(here) or name, frozenset(ports))

    def _host_numbers(self) -> bool:
        with contextlib.suppress(OSError):
            return os.readlink(self.proc / "self/ns/pid") == HOST_PID_NAMESPACE
        return False

    def _has_gpu_open(self, here: Path) -> bool:
        return any(target.startswith("/dev/nvidia") for target in _links(here / "fd"))

    def _better_name(self, here: Path) -> str:
        """`python3` and `vllm` say little: the program's own title, cut to a few words, says more."""
        with contextlib.suppress(OSError):
            words = (here / "cmdline").read_bytes().split(b"\0")
            return os.path.basename(words[0].decode("utf-8", "replace")).strip()[:40]
        return ""

    def _ancestors(self, pid: int) -> list[int]:
        out: list[int] = []
        while len(out) < 64:
            try:
                stat = (self.proc / str(pid) / "stat").read_text(errors="replace")
                pid = int(stat.rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                break
            if pid <= 1:  # init listens for nobody's engine, unless it is one: in a container
                if pid == 1 and not self._host_numbers():
                    out.append(pid)
                break
            out.append(pid)
        return out

    def _listens(self, pid: int) -> set[int]:
        """The ports of its listening sockets, in its own network namespace."""
        here = self.proc / str(pid)
        inodes = {t[8:-1] for t in _links(here / "fd") if t.startswith("socket:[")}
        return {port for port, inode in _listening(here) if inode in inodes} if inodes else set()


def _links(folder: Path) -> list[str]:
    out = []
    with contextlib.suppress(OSError):  # another user's process
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                out.append(os.readlink(entry.path))
    return out


def _listening(here: Path) -> list[tuple[int, str]]:
    """(port, socket inode) of each listening TCP socket, from /proc/PID/net/tcp and tcp6."""
    out = []
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (here / "net" / name).read_text().splitlines()[1:]:
                parts = line.split()
                if len(parts) > 9 and parts[3] == "0A":  # TCP_LISTEN
                    out.append((int(parts[1].rpartition(":")[2], 16), parts[9]))
    return out


def by_port(
    rows: list[dict[str, Any]], host: str, engines: Mapping[tuple[str, int], str]
) -> list[dict[str, Any]]:
    """Processes of another machine: the engine whose address is `host` and the port that they listen on."""
    out = []
    for row in rows:
        name = engines.get((host, int(row.get("port") or 0)))
        out.append({**row, "engine": name} if name else row)
    return out
