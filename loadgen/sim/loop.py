"""An event loop that wakes on the microsecond.

asyncio's epoll selector rounds every wait up to whole milliseconds, so that each token would leave up to a
millisecond late. An epoll object is itself a file that select() can wait for, and select() takes
microseconds.
"""

from __future__ import annotations

import asyncio
import select
import selectors
from collections.abc import Coroutine
from typing import Any

_SELECT_LIMIT = 1024  # select() takes no file numbers from here on


def precise_loop() -> asyncio.AbstractEventLoop:
    """A new event loop; the usual one where there is no epoll (kqueue is precise by itself)."""
    if not hasattr(selectors, "EpollSelector"):  # pragma: no cover
        return asyncio.new_event_loop()

    class PreciseSelector(selectors.EpollSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is not None and timeout > 0 and self.fileno() < _SELECT_LIMIT:
                select.select([self.fileno()], [], [], timeout)
                timeout = 0
            return super().select(timeout)

    return asyncio.SelectorEventLoop(PreciseSelector())


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on such a loop."""
    loop = precise_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
