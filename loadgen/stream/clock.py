"""Clocks, and the kernel's receive time of a segment.

On Linux a socket with SO_TIMESTAMPNS hands back, from recvmsg, the wall-clock time at which the kernel took
the segment in: right even when this process looks milliseconds later. Durations are monotonic: the offset
between the two clocks is taken for each request, and a jump of it marks the record.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Not in the socket module of Python 3.10-3.13: asm-generic's number.
SO_TIMESTAMPNS = 35
STAMPS_SUPPORTED = sys.platform == "linux" and struct.calcsize("l") == 8
TIMESPEC = struct.Struct("qq")
CMSG_SPACE = socket.CMSG_SPACE(TIMESPEC.size) if STAMPS_SUPPORTED else 0

KERNEL = "kernel"
READ = "read"

# The offset of two clock reads is worse than this only if the clock was stepped or slewed hard in between.
STEP_NS = 500_000


def wall_offset_ns(tries: int = 5) -> int:
    """Wall clock minus monotonic clock, in ns, from the tightest of a few readings."""
    best = None
    offset = 0
    for _ in range(tries):
        before = time.monotonic_ns()
        wall = time.time_ns()
        width = time.monotonic_ns() - before
        if best is None or width < best:
            best, offset = width, wall - before - width // 2
            if width < 1_000:
                break
    return offset


def enable_stamps(sock: socket.socket) -> bool:
    """Ask for kernel receive times on `sock`; False where the system has none."""
    if not STAMPS_SUPPORTED:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def stamp_of(ancillary: list[tuple[int, int, bytes]]) -> bytes:
    """The kernel's time among recvmsg's ancillary data as the timespec that it is, b"" if there is none."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) >= TIMESPEC.size:
            return data[: TIMESPEC.size]
    return b""


def to_stamp(wall_ns: int) -> bytes:
    """A time in the kernel's form."""
    return TIMESPEC.pack(*divmod(wall_ns, 1_000_000_000))


def from_stamp(stamp: bytes) -> int:
    """Wall ns."""
    seconds, nanos = TIMESPEC.unpack(stamp)
    return int(seconds * 1_000_000_000 + nanos)


def times_ns(stamps: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Wall ns of many stamps."""
    pairs = np.frombuffer(b"".join(stamps), np.int64).reshape(-1, 2)
    return pairs[:, 0] * 1_000_000_000 + pairs[:, 1]
