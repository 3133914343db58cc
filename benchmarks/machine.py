"""The facts about this machine without which a cost in microseconds means nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path


def facts() -> dict[str, str]:
    """CPU, cores, kernel, Python, the packages that matter, and how busy the machine is just now."""
    packages = ("locust", "gevent", "httptools", "orjson", "aiohttp", "uvloop")
    return {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
        "load": " ".join(f"{x:.2f}" for x in os.getloadavg()),
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"
