"""DueTimer: wakes a greenlet at a moment of the monotonic clock, to a fraction of a millisecond.

gevent's own timers are rounded to the millisecond that epoll counts in. On Linux a timerfd, which the event
loop watches like any other file, ends at the nanosecond that it was set to, without a processor that spins.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import ctypes
import os
import sys
import time
from typing import Any

import gevent
from gevent import get_hub

_CLOCK_MONOTONIC = 1
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME
_READABLE = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanos", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class DueTimer:
    """Of one greenlet. `exact` is False where there is no timerfd: then it wakes up to 2 ms late."""

    def __init__(self, *, exact: bool = True) -> None:
        self._fd = _timerfd() if exact else None
        self._watcher: Any = None
        if self._fd is not None:
            self._watcher = get_hub().loop.io(self._fd, _READABLE)

    @property
    def exact(self) -> bool:
        return self._fd is not None

    def wait_until(self, mono_ns: int) -> None:
        """Returns at once if that is past. `mono_ns` is of time.monotonic_ns."""
        left_ns = mono_ns - time.monotonic_ns()
        if left_ns <= 0:
            return
        if self._fd is None:
            gevent.sleep(left_ns / 1e9)
            return
        setting = _Setting(_Timespec(0, 0), _Timespec(*divmod(mono_ns, 1_000_000_000)))
        if _libc().timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(setting), None) != 0:
            gevent.sleep(left_ns / 1e9)
            return
        get_hub().wait(self._watcher)
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


_loaded: list[Any] = []


def _libc() -> Any:
    if not _loaded:
        _loaded.append(ctypes.CDLL(None, use_errno=True))
    return _loaded[0]


def _timerfd() -> int | None:
    """None where the system has none. (Python has it in `os` from 3.13 on.)"""
    if not sys.platform.startswith("linux"):
        return None
    try:
        fd = _libc().timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
    except (AttributeError, OSError):
        return None
    return fd if fd >= 0 else None
