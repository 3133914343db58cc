"""Writing one answer: bytes in order, some of them later. The only place that writes streams to sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable

Written = Callable[[int], None]  # gets the monotonic nanoseconds just before the write


class Output:
    """The way out of one answer. Without delays every write reaches the socket before `write` returns."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._queue: deque[tuple[float, bytes, Written | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def write(self, data: bytes, written: Written | None = None, delay: float = 0.0) -> None:
        """Write `data` after all that was written before, and not before `delay` seconds after that."""
        if self._closed:
            return
        if not delay and not self._queue:
            if written is not None:
                written(time.monotonic_ns())
            if data:
                self._transport.write(data)
            return
        self._queue.append((delay, data, written))
        if len(self._queue) == 1:
            self._wait()

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._queue[0][0], self._flush)

    def _flush(self) -> None:
        """Write the head of the queue and what need not wait behind it."""
        while self._queue and not self._closed:
            _, data, written = self._queue.popleft()
            if written is not None:
                written(time.monotonic_ns())
            if data:
                self._transport.write(data)
            if self._queue and self._queue[0][0]:
                self._wait()
                return

    def finish(self, done: Callable[[], None]) -> None:
        """Call `done` when everything has been written."""
        self.write(b"", lambda _: done())

    def stop(self) -> None:
        """Write nothing more."""
        self._closed = True
        self._queue.clear()
        if self._timer is not None:
            self._timer.cancel()

    def reset(self) -> None:
        """Abort the connection so that the client gets a reset."""
        self.stop()
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()
