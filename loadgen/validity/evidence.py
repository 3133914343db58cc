"""What the checks look at: a run's figures and what its telemetry says of the measured turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.metrics.turns import Turn
from loadgen.store.jsonl import Damage, read_rows
from loadgen.validity.generator_rows import GeneratorLoad, generator_load
from loadgen.validity.gpu_rows import GpuLoad, gpu_load


@dataclass(frozen=True)
class Evidence:
    """`engines` are the figures of the JSON summary by engine. `generator` and `gpus` are of the measured
    turns alone; None and empty where nobody looked. `infos` are the manifest's engines."""

    state: str
    engines: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    generator: GeneratorLoad | None = None
    gpus: Sequence[GpuLoad] = ()
    infos: Sequence[Mapping[str, Any]] = ()
    workers_lost: Sequence[str] = ()

    def with_counts(self) -> Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
        """(engine, its figures, its counts) of the engines that were sent requests."""
        for name, figures in self.engines.items():
            if figures["counts"]["requests"]:
                yield name, figures, figures["counts"]


def telemetry(path: Path, turns: Mapping[str, Sequence[Turn]]) -> tuple[GeneratorLoad | None, list[GpuLoad]]:
    """What windows.jsonl (of all workers) and gpu.jsonl in a run's directory say of its measured turns."""

    def rows(*files: Path) -> Iterable[dict[str, Any]]:
        for file in files:
            if file.exists():
                yield from read_rows(file, Damage())

    return generator_load(rows(*sorted(path.glob("windows*.jsonl")))), gpu_load(
        rows(path / "gpu.jsonl"), turns
    )
