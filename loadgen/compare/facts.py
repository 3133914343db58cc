"""What a comparison wants to know of each engine beside its figures: its workload, memory, GPUs, energy."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.compare.enginelog import LogMemory, log_memory
from loadgen.compare.kvuse import most_tokens_in_flight, most_used_share
from loadgen.compare.memory import MemorySources, engine_memory
from loadgen.report.load import RunData
from loadgen.report.offered import is_open, rate_of
from loadgen.report.summary import RunSummary
from loadgen.store import RunDir, StoreError
from loadgen.store.jsonl import read_rows

ENERGY = (
    "joules_per_output_token",
    "joules_per_request",
    "mean_power_w",
    "energy_source",
    "gpus",
    "gpus_named",
    "turns",
)
GPUS_GIVEN = "as given"
GPUS_NAMED = "GPUs with its processes"
GPUS_ALL = "all GPUs that were watched: its own could not be told"


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """`users` are those of the run, `prompt_tokens` the mean of its successful requests, `throughput` is in
    tokens/s; None where not known. An `open_loop` has no users, but a `rate` if it replays no trace.
    `energy` are figures of the summary's `gpu`."""

    users: int | None = None
    prompt_tokens: float | None = None
    throughput: float | None = None
    gpus: int | None = None
    gpus_source: str = ""
    memory: dict[str, Any] = field(default_factory=dict)
    energy: dict[str, Any] = field(default_factory=dict)
    traffic_class: str = ""
    open_loop: bool = False
    rate: float | None = None

    def of_class(self, traffic_class: str, figures: Mapping[str, Any]) -> EngineFacts:
        """Of the requests of one traffic class, whose `figures` these are."""
        counts = figures["counts"]
        mean = counts["prompt_tokens"] / counts["ok"] if counts["prompt_tokens"] else None
        return EngineFacts(
            users=self.users,
            prompt_tokens=mean,
            traffic_class=traffic_class,
            open_loop=self.open_loop,
            rate=self.rate,
        )


def engine_facts(
    run: RunDir,
    data: RunData,
    summary: RunSummary,
    *,
    logs: Mapping[str, Path] | None = None,
    gpus: Mapping[str, int] | None = None,
) -> dict[str, EngineFacts]:
    """Of every engine of a run. `logs` are engines' own logs and `gpus` numbers of GPUs, by engine; "" stands
    for all. Raises StoreError where a file can't be read."""
    shares = most_used_share(read_rows(run.engine_path)) if run.engine_path.exists() else {}
    infos = {str(i.get("name")): i for i in summary.infos}
    users = summary.settings.get("users")
    opened = is_open(summary.settings)
    out = {}
    for name, figures in summary.engines.items():
        counts, gpu = figures["counts"], figures.get("gpu", {})
        given = (gpus or {}).get(name, (gpus or {}).get(""))
        named = bool(gpu.get("gpus_named"))
        seen = gpu.get("gpus") or None
        slots = infos.get(name, {}).get("slots")
        memory = engine_memory(
            MemorySources(
                info=infos.get(name, {}),
                reserved=gpu.get("peak_memory_bytes"),
                log=_log(run, summary.settings, name, logs or {}),
                share=shares.get(name),
                tokens=most_tokens_in_flight(
                    data.engines[name].columns, slots if isinstance(slots, int) else None
                ),
            )
        )
        out[name] = EngineFacts(
            users=users if isinstance(users, int) and not opened else None,
            prompt_tokens=counts["prompt_tokens"] / counts["ok"] if counts["prompt_tokens"] else None,
            throughput=figures["window"]["throughput_tokens_per_s"],
            gpus=given or seen,
            gpus_source=GPUS_GIVEN if given else (GPUS_NAMED if named else GPUS_ALL) if seen else "",
            memory=memory,
            energy={k: gpu[k] for k in ENERGY if k in gpu} if "energy_j" in gpu else {},
            open_loop=opened,
            rate=rate_of(summary.settings),
        )
    return out


def _log(run: RunDir, settings: Mapping[str, Any], engine: str, logs: Mapping[str, Path]) -> LogMemory:
    """Of the log that was named, else of what its start command printed (exclusive residency), else of the
    `log` in its settings, where that still is."""
    path: Path | None = logs.get(engine)
    if path is None:
        path = next((p for p in _known_logs(run, settings, engine) if os.path.isfile(p)), None)
    if path is None:
        return LogMemory()
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            return log_memory(lines)
    except OSError as e:
        if engine not in logs:
            return LogMemory()
        raise StoreError(f"{path} cannot be read: {e.strerror or e}") from None


def _known_logs(run: RunDir, settings: Mapping[str, Any], engine: str) -> Iterator[Path]:
    if Path(engine).name == engine:  # in a journal of somebody else's anything may stand
        yield run.path / f"engine-{engine}.log"
    specs = settings.get("engines")
    for spec in specs if isinstance(specs, list) else ():
        if isinstance(spec, dict) and spec.get("name") == engine and isinstance(spec.get("log"), str):
            yield Path(spec["log"])
