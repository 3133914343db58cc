"""What this machine has, beside what a plan needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from loadgen.plan.estimate import Plan

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True)
class Machine:
    """`ports`: for connections to one address; `descriptors`: the hard limit of a process; None: not
    known."""

    cores: int
    memory_mb: float
    descriptors: int | None
    ports: int | None

    @classmethod
    def here(cls) -> Machine:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(cores, psutil.virtual_memory().available / 1e6, _descriptors(), _ports())

    def lacks(self, plan: Plan) -> list[str]:
        """A sentence for each thing that this machine has too little of."""
        out = []
        if self.cores < plan.cores:
            out.append(f"this machine has {self.cores} of the {plan.cores} cores: take more machines")
        if self.memory_mb < plan.memory_mb:
            out.append(f"this machine has {self.memory_mb / 1000:.1f} GB of memory to spare")
        if self.descriptors is not None and self.descriptors < plan.descriptors:
            out.append(
                f"a process may open {self.descriptors:,} files here, and a worker needs "
                f"{plan.descriptors:,}: raise the hard limit (ulimit -Hn)"
            )
        if self.ports is not None and self.ports < plan.load.concurrency:
            out.append(
                f"this machine has {self.ports:,} ports for connections to one address, fewer than streams: "
                f"widen {PORT_RANGE}, or spread the workers over machines"
            )
        return out

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def _descriptors() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def _ports(file: Path = PORT_RANGE) -> int | None:
    try:
        low, high = map(int, file.read_text().split())
    except (OSError, ValueError):
        return None
    return high - low + 1
