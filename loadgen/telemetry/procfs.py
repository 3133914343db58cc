"""Processes as /proc shows them: their name, and where they, or an ancestor, can be reached by TCP."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's proc_ns.h
LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp
MOST_ANCESTORS = 64

Endpoint = tuple[str, int]  # IP address, port


@dataclass(frozen=True)
class Process:
    """`endpoints`: the addresses and ports on which it or an ancestor listens. Loopback addresses are those
    of our own network namespace only: in a container they lead nowhere else."""

    name: str
    endpoints: frozenset[Endpoint] = frozenset()


@dataclass
class ProcFs:
    """`proc` is /proc, or a folder like it."""

    proc: Path = Path("/proc")

    def process(self, pid: int) -> Process | None:
        """The process that NVML means by this number; None if that cannot be known.

        In a container with process numbers of its own, NVML may give the host's: a number counts there only
        if its process has a GPU open.
        """
        here = self.proc / str(pid)
        name = _text(here / "comm").strip()
        if not name or (not self._host_numbers() and not self._has_gpu_open(here)):
            return None
        found: set[Endpoint] = set()
        for one in [pid, *self._ancestors(pid)]:
            found |= self._endpoints(self.proc / str(one))
        return Process(self._program(here) or name, frozenset(found))

    def published(self) -> dict[int, Endpoint]:
        """Ports of this machine that Docker passes on to a container, from its proxies' command lines."""
        out = {}
        for comm in self.proc.glob("[0-9]*/comm"):
            if _text(comm).strip() == "docker-proxy":
                words = _text(comm.with_name("cmdline")).split("\0")
                flags = dict(zip(words[1::2], words[2::2], strict=False))
                with contextlib.suppress(KeyError, ValueError):
                    to = (flags["-container-ip"], int(flags["-container-port"]))
                    out[int(flags["-host-port"])] = to
        return out

    def own_addresses(self) -> set[str]:
        """This machine's, or container's, own IP addresses, loopback among them."""
        return set(_addresses(self.proc / "self"))

    def _host_numbers(self) -> bool:
        return _link(self.proc / "self/ns/pid") == HOST_PID_NAMESPACE

    def _has_gpu_open(self, here: Path) -> bool:
        return any(target.startswith("/dev/nvidia") for target in _links(here / "fd"))

    def _program(self, here: Path) -> str:
        """`comm` is cut to 15 characters and often a thread's; a program that names itself does it here."""
        return os.path.basename(_text(here / "cmdline").split("\0")[0]).strip()[:40]

    def _ancestors(self, pid: int) -> list[int]:
        out: list[int] = []
        while len(out) < MOST_ANCESTORS:
            try:
                parent = int(_text(self.proc / str(pid) / "stat").rpartition(")")[2].split()[1])
            except (ValueError, IndexError):
                break
            # On a host, 1 is init; in a container it may be the engine.
            if parent <= 0 or (parent == 1 and self._host_numbers()):
                break
            out.append(parent)
            pid = parent
        return out

    def _endpoints(self, here: Path) -> set[Endpoint]:
        inodes = {target[8:-1] for target in _links(here / "fd") if target.startswith("socket:[")}
        ports = {port for port, inode in _listening(here) if inode in inodes} if inodes else set()
        if not ports:
            return set()
        ours = _link(here / "ns/net") == _link(self.proc / "self/ns/net")
        addresses = [a for a in _addresses(here) if ours or not ipaddress.ip_address(a).is_loopback]
        return {(address, port) for address in addresses for port in ports}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended, or is another user's
        return ""


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _links(folder: Path) -> list[str]:
    try:
        return [_link(Path(entry.path)) for entry in os.scandir(folder)]
    except OSError:
        return []


def _listening(here: Path) -> Iterator[tuple[int, str]]:
    """(port, socket inode) of each listening TCP socket in the process's network namespace."""
    for name in ("tcp", "tcp6"):
        for line in _text(here / "net" / name).splitlines()[1:]:
            parts = line.split()
            if len(parts) > 9 and parts[3] == LISTEN:
                yield int(parts[1].rpartition(":")[2], 16), parts[9]


def _addresses(here: Path) -> Iterator[str]:
    """The IP addresses of the process's network namespace."""
    address = ""
    for line in _text(here / "net/fib_trie").splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            yield address
    for line in _text(here / "net/if_inet6").splitlines():
        with contextlib.suppress(ValueError, IndexError):
            yield str(ipaddress.IPv6Address(int(line.split()[0], 16)))
