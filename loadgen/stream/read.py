"""Read: what one recvmsg brought, put away until there is time to parse it."""

from __future__ import annotations

from typing import NamedTuple


class Sweep:
    """What the reads of one sweep share (wall ns): `floor_ns`, at which their connections were known to be
    empty, and `read_ns`, by which all of them had been read."""

    __slots__ = ("floor_ns", "read_ns")

    def __init__(self, floor_ns: int, read_ns: int = 0) -> None:
        self.floor_ns = floor_ns
        self.read_ns = read_ns


class Read(NamedTuple):
    """`stamp` is the kernel's time as a timespec (see clock), `data` what came. The reader makes plain
    tuples: 12,000 a second of them."""

    stamp: bytes
    sweep: Sweep
    data: bytes
