"""manifest.json: all that is needed to believe a run, or to repeat it. No secrets."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from loadgen.config import ConfigError, Settings
from loadgen.store.errors import StoreError

RUNNING = "running"
COMPLETE = "complete"
INTERRUPTED = "interrupted"
FAILED = "failed"
FORMAT = 1
PACKAGES = ("loadgen", "locust", "gevent", "httptools", "numpy", "orjson", "pydantic", "requests")


@dataclass
class Manifest:
    """Written with state `running` when a run starts and again when it ends (`complete`, `interrupted`,
    `failed`): a manifest that still says `running` belongs to a run that was killed, or still goes on.

    `engines` are EngineInfo dicts. `notes` are sentences that the summary repeats. `extra` is room for
    other parts of the product; unknown keys of a newer version are kept in it when reading.
    """

    run: str = ""
    scenario: str = ""
    suite: str | None = None
    state: str = RUNNING
    start_ns: int = 0
    end_ns: int | None = None
    clock: str = "kernel"
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    engines: list[dict[str, Any]] = field(default_factory=list)
    host: dict[str, Any] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    format: int = FORMAT
    extra: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()  # blanked wherever they occur; never written

    @classmethod
    def new(
        cls,
        run: str,
        settings: Settings,
        engines: Iterable[Mapping[str, Any]] = (),
        *,
        clock: str = "kernel",
        suite: str | None = None,
        notes: Iterable[str] = (),
    ) -> Manifest:
        """The manifest of a run that starts now on this machine."""
        return cls(
            run=run,
            scenario=settings.scenario,
            suite=suite,
            start_ns=time.time_ns(),
            clock=clock,
            settings=settings.public_dict(),
            seeds={"prompts": settings.seed},
            engines=[dict(e) for e in engines],
            host=host_facts(),
            packages=package_versions(),
            notes=list(notes),
            secrets=secrets_of(settings),
        )

    def blank(self, text: str) -> str:
        """The text without any of `secrets`."""
        return str(blank(text, self.secrets))

    def note(self, text: str) -> None:
        """Add a sentence, once."""
        if text not in self.notes:
            self.notes.append(text)

    def finish(self, path: Path, state: str = COMPLETE) -> None:
        """Set the end and the state, and write."""
        self.end_ns = time.time_ns()
        self.state = state
        self.write(path)

    def to_dict(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("extra", "secrets")}
        clean = blank({**self.extra, **data}, self.secrets)
        assert isinstance(clean, dict)
        return clean

    def write(self, path: Path) -> None:
        """Replace the file in one step: a reader, or a crash, sees the old one or the new one whole.

        Raises StoreError where it can't be written.
        """
        write_atomically(path, json.dumps(self.to_dict(), indent=2, ensure_ascii=False, default=str) + "\n")

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Raises StoreError with one sentence if there is none, or it is damaged."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as e:
            raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None
        except (ValueError, RecursionError) as e:
            raise StoreError(f"{path} is damaged: {e}") from None
        if not isinstance(data, dict):
            raise StoreError(f"{path} is damaged: not a JSON object")
        defaults = cls()
        known: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in data.items():
            if key not in _NAMES or key in ("extra", "secrets"):
                extra[key] = value
                continue
            default = getattr(defaults, key)
            if value is not None and default is not None and not isinstance(value, type(default)):
                raise StoreError(f"{path} is damaged: {key} is a {type(value).__name__}")
            if value is not None or default is None:
                known[key] = value
        if not -(2**63) <= known.get("start_ns", 0) < 2**63:
            raise StoreError(f"{path} is damaged: start_ns does not fit 64 bits")
        if not all(isinstance(e, dict) for e in known.get("engines", [])):
            raise StoreError(f"{path} is damaged: engines are not JSON objects")
        if not all(isinstance(e.get("facts") or {}, dict) for e in known.get("engines", [])):
            raise StoreError(f"{path} is damaged: facts of an engine are not a JSON object")
        if not all(isinstance(note, str) for note in known.get("notes", [])):
            raise StoreError(f"{path} is damaged: notes are not texts")
        return cls(**known, extra=extra)


_NAMES = frozenset(f.name for f in fields(Manifest))


def write_atomically(path: Path, text: str) -> None:
    """Write a small text file in one step. Raises StoreError.

    A path that is not UTF-8 gives half a surrogate pair, which is written as JSON has it: \\udcff.
    """
    path = Path(path)
    part = path.with_name(f".{path.name[:60]}.{os.getpid()}")  # a name may be as long as names can be
    try:
        with open(part, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except OSError as e:
        part.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be written: {e.strerror or e}") from None
    except BaseException:  # Ctrl-C
        part.unlink(missing_ok=True)
        raise


def host_facts() -> dict[str, Any]:
    """The machine that generates the load: name, system, processor, cores it may use, memory in bytes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cores": cores,
        "memory_bytes": psutil.virtual_memory().total,
        "python": sys.version.split()[0],
    }


def package_versions(names: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Installed versions; a package that is not installed is left out."""
    out = {}
    for name in names:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return out


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def secrets_of(settings: Settings) -> tuple[str, ...]:
    """Keys and header values in force, so that no command line or note carries one into the manifest."""
    found: set[str] = set()
    for engine in settings.engines:
        with contextlib.suppress(ConfigError):
            found.add(engine.api_key() or "")
        found.update(engine.headers.values())
    return tuple(sorted((s for s in found if len(s) >= 6), key=len, reverse=True))


def blank(value: Any, secrets: tuple[str, ...]) -> Any:
    """The value (text, or what JSON knows) without any of the secrets."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "<secret>")
        return value
    if isinstance(value, Mapping):
        return {str(k): blank(v, secrets) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [blank(v, secrets) for v in value]
    return value
