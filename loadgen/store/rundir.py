"""Run directories: one directory a run, a directory of runs a suite, and `latest`.

runs/
  latest -> 2026-11-30T16-41-02_concurrency
  2026-11-30T16-41-02_concurrency/   manifest.json requests.jsonl events.jsonl summary.json ...
  2026-11-30T17-02-40_reference/     suite.json and one run directory a scenario
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.store.errors import StoreError
from loadgen.store.manifest import Manifest, write_atomically

LATEST = "latest"
MANIFEST = "manifest.json"
JOURNAL = "requests.jsonl"
EVENTS = "events.jsonl"
WINDOWS = "windows.jsonl"
GPU = "gpu.jsonl"
ENGINE = "engine.jsonl"
DERIVED = "derived.jsonl"
SUITE = "suite.json"
NEWEST = 5


@dataclass(frozen=True)
class RunDir:
    """The directory of one run, which is one scenario."""

    path: Path

    @classmethod
    def create(
        cls, runs_dir: Path, scenario: str, suite: Suite | None = None, *, latest: bool = True
    ) -> RunDir:
        """Make a new run directory, in the suite if there is one, and point `latest` at it (or leave it on
        the suite, or where it is: not `latest`). Raises StoreError."""
        parent = suite.path if suite else Path(runs_dir)
        run = cls(_new_directory(parent, scenario))
        if suite:
            suite.add(run)
        elif latest:
            _point_latest(parent, run.path.name)
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """An existing run directory: one with a manifest or a journal. Raises StoreError."""
        path = Path(path)
        if not is_run(path):
            raise StoreError(_not_a_run(path))
        return cls(path)

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def manifest_path(self) -> Path:
        return self.path / MANIFEST

    @property
    def journal_path(self) -> Path:
        return self.path / JOURNAL

    @property
    def events_path(self) -> Path:
        return self.path / EVENTS

    @property
    def windows_path(self) -> Path:
        """What the generator saw of each engine in each second, provisional."""
        return self.path / WINDOWS

    @property
    def gpu_path(self) -> Path:
        return self.path / GPU

    @property
    def engine_path(self) -> Path:
        """The engines' own counters."""
        return self.path / ENGINE

    @property
    def derived_path(self) -> Path:
        """Points for InfluxDB that are computed from the journals when the run is over."""
        return self.path / DERIVED

    @property
    def summary_path(self) -> Path:
        return self.path / "summary.json"

    @property
    def requests_parquet(self) -> Path:
        return self.path / "requests.parquet"

    @property
    def chunk_events_parquet(self) -> Path:
        return self.path / "chunk_events.parquet"

    def worker_journal_path(self, worker: str) -> Path:
        """A worker's own journal, its safety copy: requests-WORKER.jsonl."""
        return self.path / f"requests-{_safe(worker)}.jsonl"

    def journals(self) -> list[Path]:
        """The journals to read: the run's own first, then workers' copies, which may hold records that never
        reached the master."""
        own = [self.journal_path] if self.journal_path.exists() else []
        return own + sorted(self.path.glob("requests-*.jsonl"))

    def manifest(self) -> Manifest:
        """Raises StoreError if it is missing or damaged."""
        return Manifest.read(self.manifest_path)

    def scenario(self) -> str:
        """As the manifest says, else by the directory's name. Raises StoreError if it is damaged."""
        named = self.manifest().scenario if self.manifest_path.exists() else ""
        return named or self.name.partition("_")[2]


@dataclass(frozen=True)
class Suite:
    """A directory of runs, listed in order in suite.json."""

    path: Path

    @classmethod
    def create(cls, runs_dir: Path, name: str = "reference") -> Suite:
        """Make a new suite directory and point `latest` at it. Raises StoreError."""
        suite = cls(_new_directory(Path(runs_dir), name))
        suite._write({"name": name, "start_ns": time.time_ns(), "runs": []})
        _point_latest(Path(runs_dir), suite.path.name)
        return suite

    @classmethod
    def open(cls, path: Path) -> Suite:
        """Raises StoreError if it is not a suite, or its suite.json is damaged."""
        suite = cls(Path(path))
        suite._read()
        return suite

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def add(self, run: RunDir) -> None:
        """List a run. RunDir.create does this."""
        data = self._read()
        if run.path.name not in data["runs"]:
            data["runs"].append(run.path.name)
            self._write(data)

    def drop(self, run: RunDir) -> None:
        """List a run no longer; its directory stays."""
        data = self._read()
        if run.path.name in data["runs"]:
            data["runs"].remove(run.path.name)
            self._write(data)

    def runs(self) -> list[RunDir]:
        """Its runs in order; a listed run whose directory is gone is left out."""
        return [RunDir(self.path / n) for n in self._read()["runs"] if is_run(self.path / n)]

    def missing(self) -> list[str]:
        """Names of listed runs whose directories are gone."""
        return [n for n in self._read()["runs"] if not is_run(self.path / n)]

    def _read(self) -> dict[str, Any]:
        file = self.path / SUITE
        try:
            data: Any = json.loads(file.read_text(encoding="utf-8"))
        except OSError as e:
            raise StoreError(f"{file} cannot be read: {e.strerror or e}") from None
        except (ValueError, RecursionError) as e:
            raise StoreError(f"{file} is damaged: {e}") from None
        runs = data.get("runs") if isinstance(data, dict) else None
        if not isinstance(runs, list) or not all(isinstance(n, str) and Path(n).name == n for n in runs):
            raise StoreError(f"{file} is damaged: it has no list of runs")
        return {**data, "runs": runs}

    def _write(self, data: dict[str, Any]) -> None:
        write_atomically(self.path / SUITE, json.dumps(data, indent=2) + "\n")


def resolve(name: str | Path, runs_dir: Path) -> RunDir | Suite:
    """The run or suite that a person means: a directory, a name under `runs_dir` (also of a run inside a
    suite), or `latest`. Raises StoreError, which names the newest runs there are.
    """
    text = str(name)
    runs_dir = Path(runs_dir)
    try:
        if text == LATEST:
            return _open(_latest(runs_dir))
        here = Path(text)
        candidates = [here, runs_dir / text]
        if here.name == text:
            candidates += sorted(runs_dir.glob(f"*/{_glob_quote(text)}"))
        for path in candidates:
            if is_suite(path) or is_run(path):
                return _open(path)
        for path in candidates:
            if path.exists():
                raise StoreError(f"{_not_a_run(path)}{_hint(runs_dir)}")
    except OSError as e:
        raise StoreError(f"{e.filename or text} cannot be read: {e.strerror or e}") from None
    raise StoreError(f"there is no run {text!r}{_hint(runs_dir)}")


def newest(runs_dir: Path, count: int = NEWEST) -> list[str]:
    """Names of the newest runs and suites, the newest first (names begin with their time)."""
    try:
        entries = [p for p in Path(runs_dir).iterdir() if p.name != LATEST and not p.is_symlink()]
        return sorted((p.name for p in entries if is_suite(p) or is_run(p)), reverse=True)[:count]
    except OSError:
        return []


def _open(path: Path) -> RunDir | Suite:
    return Suite.open(path) if is_suite(path) else RunDir.open(path)


def is_run(path: Path) -> bool:
    """Whether it is a directory with a manifest or a journal."""
    return path.is_dir() and (
        (path / MANIFEST).exists() or (path / JOURNAL).exists() or any(path.glob("requests-*.jsonl"))
    )


def is_suite(path: Path) -> bool:
    """Whether it is a directory with a suite.json."""
    return path.is_dir() and (path / SUITE).exists()


def _not_a_run(path: Path) -> str:
    if not path.exists():
        return f"there is no directory {path}"
    if not path.is_dir():
        return f"{path} is a file, not a run directory"
    return f"{path} is not a run directory (it has no {MANIFEST}, {JOURNAL} or {SUITE})"


def _hint(runs_dir: Path) -> str:
    names = newest(runs_dir)
    if names:
        return f"; the newest in {runs_dir}: {', '.join(names)}"
    return f"; there are no runs in {runs_dir} yet (--runs-dir names another place)"


def _new_directory(parent: Path, name: str) -> Path:
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    base = f"{stamp}_{_safe(name)}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for n in range(1, 1000):
            path = parent / (base if n == 1 else f"{base}-{n}")
            try:
                path.mkdir()
                return path
            except FileExistsError:
                continue
    except OSError as e:
        raise StoreError(f"no run directory can be made in {parent}: {e.strerror or e}") from None
    raise StoreError(f"no run directory can be made in {parent}: {base} exists a thousand times")


def _point_latest(runs_dir: Path, name: str) -> None:
    """`latest` becomes a symlink, replaced in one step; a file with the name where links aren't allowed."""
    link = runs_dir / LATEST
    part = runs_dir / f".{LATEST}.{os.getpid()}"
    try:
        part.unlink(missing_ok=True)
        try:
            os.symlink(name, part, target_is_directory=True)
        except (OSError, NotImplementedError):
            part.write_text(name + "\n", encoding="utf-8")
        os.replace(part, link)
    except OSError:
        part.unlink(missing_ok=True)  # someone's directory is called latest: not worth failing a run for


def _latest(runs_dir: Path) -> Path:
    link = runs_dir / LATEST
    if link.is_symlink() or not link.exists():
        target = link
    else:
        target = link if link.is_dir() else runs_dir / Path(link.read_text(encoding="utf-8").strip()).name
    if is_suite(target) or is_run(target):
        return target.resolve()
    names = newest(runs_dir, 1)
    if not names:
        raise StoreError(f"there are no runs in {runs_dir} yet (--runs-dir names another place)")
    return runs_dir / names[0]


def _safe(name: str) -> str:
    """A name that is one path component everywhere."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip(".-") or "run"


def _glob_quote(text: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", text)
