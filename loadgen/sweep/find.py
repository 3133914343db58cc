"""Which sweep somebody means, and that nobody else is at it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from loadgen.plain import clean
from loadgen.store import StoreError, Suite, resolve
from loadgen.store.lock import directory_lock
from loadgen.store.rundir import LATEST
from loadgen.sweep.record import FILE

LOCK = ".sweep.lock"


def find_sweep(name: str, runs_dir: Path) -> Suite:
    """A sweep's directory, its name under `runs_dir`, or `latest`, the newest sweep, whatever runs came after
    it. Raises StoreError."""
    if name == LATEST:
        found = sorted(
            (p.parent for p in runs_dir.glob(f"*/{FILE}") if not p.parent.is_symlink()), reverse=True
        )
        if not found:
            raise StoreError(f"there is no sweep in {runs_dir} yet (--runs-dir names another place)")
        return Suite.open(found[0])
    target = resolve(name, runs_dir)
    if not isinstance(target, Suite) or not (target.path / FILE).exists():
        raise StoreError(f"{clean(target.name)} is not a sweep (it has no {FILE})")
    return target


def sweep_lock(folder: Path) -> AbstractContextManager[None]:
    """Held until the block ends, or the process does. Raises StoreError if another process has it."""
    return directory_lock(folder, LOCK, "is a sweep that goes on already")
