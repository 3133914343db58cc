"""What lies in the directory of runs: every run and suite with what its manifest says."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.store.errors import StoreError
from loadgen.store.manifest import RUNNING, Manifest
from loadgen.store.rundir import LATEST, RunDir, Suite, is_run, is_suite

KILLED = "killed"
DAMAGED = "damaged"
UNKNOWN = "unknown"  # there is no manifest
STATES = ("running", "complete", "interrupted", "failed", KILLED, DAMAGED, UNKNOWN)
QUIET_S = 120.0  # a run that goes on writes its windows every second


@dataclass(frozen=True)
class Listed:
    """One run. `state` is its manifest's, but KILLED of one that says it is running and has written nothing
    for two minutes. `engines` are the EngineInfo dicts of the manifest."""

    run: RunDir
    scenario: str
    state: str
    start_ns: int
    engines: tuple[dict[str, Any], ...] = ()
    suite: str | None = None

    @property
    def name(self) -> str:
        return self.run.name


@dataclass(frozen=True)
class Entry:
    """A directory in the runs' directory: one run, or a suite with its runs in order."""

    path: Path
    start_ns: int
    runs: tuple[Listed, ...] = field(default=())
    suite: bool = False

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def running(self) -> bool:
        return any(r.state == RUNNING for r in self.runs)

    def files(self) -> Iterator[os.stat_result]:
        """Of everything beneath it; what goes away meanwhile is passed over."""
        for folder, _, names in os.walk(self.path):
            for name in names:
                with contextlib.suppress(OSError):
                    yield os.lstat(os.path.join(folder, name))

    def size(self) -> int:
        """Bytes."""
        return sum(s.st_size for s in self.files())

    def quiet_s(self) -> float:
        """Seconds since anything in it was written."""
        return time.time() - max((s.st_mtime for s in self.files()), default=0.0)


def entries(runs_dir: Path) -> list[Entry]:
    """All runs and suites, the newest first. Raises StoreError if the directory can't be read."""
    runs_dir = Path(runs_dir)
    try:
        found = [p for p in runs_dir.iterdir() if p.name != LATEST and not p.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as e:
        raise StoreError(f"{runs_dir} cannot be read: {e.strerror or e}") from None
    out = [entry for path in found if (entry := _entry(path)) is not None]
    return sorted(out, key=lambda e: (e.start_ns, e.name), reverse=True)


def _entry(path: Path) -> Entry | None:
    if is_suite(path):
        try:
            runs = tuple(_listed(run, path.name) for run in Suite.open(path).runs())
        except StoreError:  # a damaged suite.json: its runs are there all the same
            runs = tuple(_listed(RunDir(p), path.name) for p in sorted(path.iterdir()) if is_run(p))
        starts = [r.start_ns for r in runs]
        return Entry(path, min(starts, default=_changed_ns(path)), runs, suite=True)
    if is_run(path):
        run = _listed(RunDir(path))
        return Entry(path, run.start_ns, (run,))
    return None


def _listed(run: RunDir, suite: str | None = None) -> Listed:
    scenario = run.name.partition("_")[2] or run.name
    try:
        manifest = run.manifest()
    except StoreError:
        state = DAMAGED if run.manifest_path.exists() else UNKNOWN
        return Listed(run, scenario, state, _changed_ns(run.path), suite=suite)
    return Listed(
        run,
        manifest.scenario or scenario,
        _state(run, manifest),
        manifest.start_ns or _changed_ns(run.path),
        tuple(manifest.engines),
        suite,
    )


def _state(run: RunDir, manifest: Manifest) -> str:
    if manifest.state != RUNNING:
        return manifest.state
    return RUNNING if Entry(run.path, 0).quiet_s() < QUIET_S else KILLED


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
