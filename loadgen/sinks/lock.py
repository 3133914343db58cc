"""One deliverer a run directory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from loadgen.store.lock import directory_lock

NAME = ".delivery.lock"


def delivery_lock(folder: Path) -> AbstractContextManager[None]:
    """Held until the block ends or the process does. Raises StoreError if another process has it."""
    return directory_lock(folder, NAME, "is being delivered already")
