"""Read: what one recvmsg brought, put away until there is time to parse it.

Plain values, since there are 12,000 a second of them and more: nothing here holds an object that Python's
garbage collector keeps track of, so what waits costs it nothing.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

# What the reads of one sweep share, in wall ns: [FLOOR], when their connections were known to be empty, and
# [READ_AT], by when all of them had been read.
Sweep: TypeAlias = "array[int]"
FLOOR, READ_AT = 0, 1

# The kernel's time as a timespec (see clock), the sweep, the bytes.
Read: TypeAlias = tuple[bytes, Sweep, bytes]


def new_sweep(floor_ns: int, read_ns: int = 0) -> Sweep:
    return array("q", (floor_ns, read_ns))
