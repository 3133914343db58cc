"""Read: what one recvmsg brought, put away until there is time to parse it."""

from __future__ import annotations

from typing import TypeAlias


class Sweep:
    """What the reads of one sweep share (wall ns): `floor_ns`, at which their connections were known to be
    empty, and `read_ns`, by which all of them had been read."""

    __slots__ = ("floor_ns", "read_ns")

    def __init__(self, floor_ns: int, read_ns: int = 0) -> None:
        self.floor_ns = floor_ns
        self.read_ns = read_ns


# The kernel's time as a timespec (see clock), the sweep, the bytes. A plain tuple: there are 12,000 a second.
Read: TypeAlias = tuple[bytes, Sweep, bytes]
