"""An append-only file of lines that survives SIGKILL, and a disk that fills up under it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path

from loadgen.store.errors import StoreError

KEEP_BYTES = 64 * 2**20
CATCH_UP_BYTES = 2**20
log = logging.getLogger("loadgen.store")


class LineWriter:
    """Writes whole lines with one unbuffered `os.write` each, so that a killed process loses at most the
    line it was writing. (The kernel keeps what it has been given; a power cut is another matter.)

    A write that fails (disk full, quota, I/O error) never raises: the lines stay in memory, up to
    `keep_bytes`, and every append and `close` tries again, in order. `problem` then holds one sentence,
    logged once for each time that writing stops. Lines that find the memory full are counted in `dropped`.
    What can't be written by `close` goes to a new directory under `fallback_dir` (the system's temporary
    directory), named in `fallback` and in `problem`; so does everything, if somebody removed the file.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep_bytes: int = KEEP_BYTES,
        fallback_dir: Path | None = None,
        write: Callable[[int, bytes], int] = os.write,
    ) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        self.fallback: Path | None = None
        self.dropped = 0
        self._keep_bytes = keep_bytes
        self._fallback_dir = fallback_dir
        self._write = write
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._head_done = 0  # bytes of the first waiting line that are in the file already
        self._failing = False
        self._removed = False
        try:
            self._fd: int | None = os.open(
                self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
            )
            self._end_torn_line()
        except OSError as e:
            raise StoreError(f"{self.path} cannot be written: {e.strerror or e}") from None

    @property
    def waiting(self) -> int:
        """Lines that are in memory only."""
        return len(self._waiting)

    def append(self, line: bytes) -> None:
        """Add one line (without its newline)."""
        if self._fd is None:
            raise ValueError(f"{self.path.name} is closed")
        data = line + b"\n"
        if self._waiting_bytes + len(data) > self._keep_bytes and self._waiting:
            self._drain(CATCH_UP_BYTES)
            if self._waiting_bytes + len(data) > self._keep_bytes:
                self.dropped += 1
                return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        # In bounded bites: catching up with 64 MiB in one append would hold up the streams being measured.
        self._drain(CATCH_UP_BYTES)

    def flush(self) -> bool:
        """Try to write everything that waits; whether that worked."""
        return self._drain(None)

    def close(self) -> None:
        """Write what waits, here or in the fallback directory. Never raises; may be called twice."""
        if self._fd is None:
            return
        if not self._drain(None):
            self._cut_partial_line()
            self._save_elsewhere()
        elif self._removed:
            self._rescue()
        if self.dropped:
            self.problem = f"{self.problem}; {self.dropped} lines found no room in memory and are lost"
            log.error("%s", self.problem)
        os.close(self._fd)
        self._fd = None

    def _drain(self, budget: int | None) -> bool:
        assert self._fd is not None
        written = 0
        while self._waiting and (budget is None or written < budget):
            head = self._waiting[0]
            try:
                n = self._write(self._fd, head[self._head_done :] if self._head_done else head)
            except OSError as e:
                self._stopped(e)
                return False
            written += n
            self._head_done += n
            if self._head_done >= len(head):
                self._waiting.popleft()
                self._waiting_bytes -= len(head)
                self._head_done = 0
        if not self._waiting and self._failing:
            self._failing = False
            log.warning("%s can be written again; every line that was kept is in it", self.path)
        if not self._removed and os.fstat(self._fd).st_nlink == 0:
            self._removed = True
            self.problem = f"{self.path} was removed while it was being written"
            log.error("%s", self.problem)
        return not self._waiting

    def _stopped(self, error: OSError) -> None:
        if self._failing:
            return
        self._failing = True
        self.problem = (
            f"{self.path} could not be written ({error.strerror or error}): lines are kept in memory"
        )
        log.error("%s and writing is tried again", self.problem)

    def _end_torn_line(self) -> None:
        """A file left by a killed writer may end in mid-line: begin on a line of our own."""
        assert self._fd is not None
        info = os.fstat(self._fd)
        if stat.S_ISREG(info.st_mode) and info.st_size and os.pread(self._fd, 1, info.st_size - 1) != b"\n":
            self._waiting.append(b"\n")
            self._waiting_bytes += 1

    def _cut_partial_line(self) -> None:
        """Take back the part of a line that did get written: the fallback file has all of it."""
        assert self._fd is not None
        if self._head_done:
            # Where that fails too, the journal ends in a torn line, which readers know how to skip.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, os.fstat(self._fd).st_size - self._head_done)

    def _rescue(self) -> None:
        """A removed file is still there for who has it open: copy it to the fallback directory."""
        assert self._fd is not None
        try:
            rest = Path(tempfile.mkdtemp(prefix="loadgen-", dir=self._fallback_dir)) / self.path.name
            os.lseek(self._fd, 0, os.SEEK_SET)
            with open(self._fd, "rb", closefd=False) as all_of_it, open(rest, "wb") as f:
                shutil.copyfileobj(all_of_it, f)
        except OSError as e:
            self.problem = f"{self.problem}, and its lines are lost ({e.strerror or e})"
        else:
            self.fallback = rest
            self.problem = f"{self.problem}: its lines are in {rest}"
        log.error("%s", self.problem)

    def _save_elsewhere(self) -> None:
        n = len(self._waiting)
        try:
            folder = Path(tempfile.mkdtemp(prefix="loadgen-", dir=self._fallback_dir))
            rest = folder / self.path.name
            with open(rest, "wb") as f:
                f.writelines(self._waiting)
        except OSError as e:
            self.problem = (
                f"{self.path} could not be written, nor its last {n} lines anywhere else "
                f"({e.strerror or e}): they are lost"
            )
        else:
            self.fallback = rest
            self.problem = (
                f"{self.path} could not be written: its last {n} lines are in {rest} "
                f"(when there is room again: cat {rest} >> {self.path})"
            )
        log.error("%s", self.problem)
        self._waiting.clear()
        self._waiting_bytes = 0
