"""All sources of GPU rows that a TelemetrySpec names, opened, started and stopped as one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from loadgen.config import TelemetrySpec
from loadgen.telemetry import nvml
from loadgen.telemetry.collector import AgentCollector
from loadgen.telemetry.exporter import DcgmExporter
from loadgen.telemetry.output import Write
from loadgen.telemetry.processes import Owners
from loadgen.telemetry.rows import note_row
from loadgen.telemetry.sampler import GpuSampler

OPEN_S = 15.0  # without persistence mode the driver is loaded first, which takes seconds a GPU
STOP_S = 3.0


class Source(Protocol):
    """Where GPU rows come from. `open` blocks, writes the facts it finds and returns them with its notes."""

    name: str

    def open(self) -> tuple[list[dict[str, Any]], list[str]]: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def latest(self) -> list[dict[str, Any]]: ...


class LocalGpus:
    """The GPUs of this machine, by NVML."""

    name = "the NVIDIA driver"

    def __init__(
        self, spec: TelemetrySpec, engines: Sequence[tuple[str, str]], host: str, write: Write
    ) -> None:
        self._spec = spec
        self._engines = engines
        self._host = host
        self._write = write
        self._sampler: GpuSampler | None = None

    def open(self) -> tuple[list[dict[str, Any]], list[str]]:
        try:
            devices, notes = nvml.open_devices(nvml.load(), self._spec.gpus)
        except nvml.NvmlError as e:
            return [], [f"no GPU is sampled here: {e}"]
        sampler = GpuSampler(
            devices,
            host=self._host,
            interval_s=self._spec.interval_s,
            write=self._write,
            owner=Owners(self._engines),
        )
        facts = sampler.open()
        self._sampler = sampler
        return facts, notes

    def start(self) -> None:
        if self._sampler:
            self._sampler.start()

    def stop(self) -> None:
        if self._sampler:
            self._sampler.stop()

    def latest(self) -> list[dict[str, Any]]:
        return self._sampler.latest() if self._sampler else []


@dataclass
class Hub:
    """`open`, then `start`, then `stop`. `facts` and `notes` are what `open` found; notes are written too,
    where there is a GPU to write about."""

    sources: Sequence[Source]
    host: str
    write: Write
    facts: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _open: list[Source] = field(default_factory=list)

    def open(self, timeout_s: float = OPEN_S) -> None:
        """Open all sources at once. One that has not answered in time is left out, and a note says so."""
        found: dict[int, tuple[list[dict[str, Any]], list[str]]] = {}

        def one(n: int, source: Source) -> None:
            try:
                found[n] = source.open()
            except Exception as e:  # the others shall be sampled all the same
                found[n] = [], [f"{source.name} cannot be sampled: {type(e).__name__}: {e}"]

        threads = [
            threading.Thread(target=one, args=(n, source), daemon=True)
            for n, source in enumerate(self.sources)
        ]
        deadline = time.monotonic() + timeout_s
        for thread in threads:
            thread.start()
        for n, (thread, source) in enumerate(zip(threads, self.sources, strict=True)):
            thread.join(max(0.0, deadline - time.monotonic()))
            if n not in found:
                self.notes.append(f"{source.name} has not answered for {timeout_s:g} s: it is not sampled")
                continue
            facts, notes = found[n]
            self.facts += facts
            self.notes += notes
            self._open.append(source)
        if self.facts:
            for text in self.notes:
                self.write(note_row(time.time_ns(), self.host, text))

    def start(self) -> None:
        for source in self._open:
            source.start()

    def stop(self) -> None:
        """Stop all sources at once, each with a last sample: what was measured until now lies between two."""
        threads = [threading.Thread(target=source.stop, daemon=True) for source in self._open]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + STOP_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def latest(self) -> list[dict[str, Any]]:
        """The last sample of each GPU, by host and GPU."""
        rows = [row for source in self._open for row in source.latest()]
        return sorted(rows, key=lambda r: (str(r["host"]), int(r["gpu"]), str(r.get("mig_instance", ""))))


def make_hub(
    spec: TelemetrySpec,
    engines: Sequence[tuple[str, str]],
    host: str,
    write: Write,
    env: Mapping[str, str] | None = None,
) -> Hub:
    """The sources that `spec` names. `engines` are (name, URL). Raises ConfigError: no token for agents."""
    env = os.environ if env is None else env
    sources: list[Source] = []
    if spec.gpu != "off":
        sources.append(LocalGpus(spec, engines, host, write))
    if spec.agents:
        token = spec.token(env)
        sources += [AgentCollector(url, token, host, spec.interval_s, write, engines) for url in spec.agents]
    sources += [DcgmExporter(url, host, spec.interval_s, write) for url in spec.dcgm]
    return Hub(sources, host, write)
