"""One process at a time works on a directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from loadgen.store.errors import StoreError


@contextlib.contextmanager
def directory_lock(folder: Path, name: str, taken: str) -> Iterator[None]:
    """Held, by the file `name` in the folder, until the block ends or the process does, however it ends.

    Raises StoreError if another process has it: `folder`, what is `taken`, and by whom.
    """
    path = Path(folder) / name
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as e:
        raise StoreError(f"{path} cannot be written: {e.strerror or e}") from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(fd, 20, 0).decode("ascii", "replace").strip()
            raise StoreError(f"{folder} {taken}" + (f", by process {who}" if who else "")) from None
        except OSError as e:
            raise StoreError(f"{path} cannot be locked: {e.strerror or e}") from None
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name in it
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)
