"""What an engine's own log says of its memory: vLLM's and llama.cpp's lines at start-up. Pure.

vLLM says a line a worker (a GPU each), so they are added up; its KV cache's tokens are those of the whole
engine. llama.cpp says a line a device; what lies in the host's memory counts only where nothing is on a GPU.
A log that several starts have been appended to speaks of the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MIB, GIB = 2**20, 2**30

_WORKER = re.compile(r"^\s*\(([^)]*)\)")
_PID = re.compile(r"\s*pid=\d+")
_VLLM_START = "non-default args"
_VLLM_BYTES = {
    "weights": re.compile(r"Model loading took ([\d.]+) GiB"),
    "kv": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
    "activation": re.compile(r"([\d.]+) GiB for peak activation"),
    "other": re.compile(r"([\d.]+) GiB for non-torch memory"),
    "graphs": re.compile(r"([\d.]+) GiB for CUDAGraph memory"),
}
_VLLM_TOKENS = re.compile(r"KV cache size: ([\d,]+) tokens")
_LLAMA_START = "load_tensors: loading model tensors"  # also of the trial that finds out what fits
_LLAMA_BUFFER = re.compile(r"(\S+)\s+(model|KV|RS|compute) buffer size\s*=\s*([\d.]+) MiB")
_LLAMA_SLOTS = re.compile(r"n_slots = (\d+), n_ctx_slot = (\d+), kv_unified = '(true|false)'")
_LLAMA_CELLS = re.compile(r"\(\s*(\d+) cells,\s*\d+ layers,\s*\d+(?:/\s*(\d+))? seqs\)")


@dataclass(frozen=True, slots=True)
class LogMemory:
    """Bytes, summed over GPUs; None for what the log does not say. `working` is what it computes in:
    activations, graphs, compute buffers."""

    weights: int | None = None
    kv_capacity: int | None = None
    kv_tokens: int | None = None
    working: int | None = None

    @property
    def empty(self) -> bool:
        return self == LogMemory()


def log_memory(lines: Iterable[str]) -> LogMemory:
    """The memory figures of a log, of either engine. An empty LogMemory if it has none."""
    vllm, llama = _Vllm(), _Llama()
    for line in lines:
        vllm.read(line)
        llama.read(line)
    found = vllm.memory()
    return llama.memory() if found.empty else found


class _Vllm:
    def __init__(self) -> None:
        self._said: dict[str, dict[str, float]] = {}
        self._tokens: dict[str, int] = {}

    def read(self, line: str) -> None:
        if _VLLM_START in line:
            self._said, self._tokens = {}, {}
        elif "GiB" in line:
            for what, pattern in _VLLM_BYTES.items():
                if found := pattern.search(line):
                    self._said.setdefault(what, {})[_who(line)] = float(found[1]) * GIB
        elif found := _VLLM_TOKENS.search(line):
            self._tokens[_who(line)] = int(found[1].replace(",", ""))

    def memory(self) -> LogMemory:
        sums = {what: round(sum(by.values())) for what, by in self._said.items()}
        working = [sums[what] for what in ("activation", "other", "graphs") if what in sums]
        return LogMemory(
            weights=sums.get("weights"),
            kv_capacity=sums.get("kv"),
            # Engines that work side by side (data parallel) have a cache each.
            kv_tokens=sum(self._tokens.values()) or None,
            working=sum(working) if "activation" in sums else None,
        )


class _Llama:
    def __init__(self) -> None:
        self._buffers: dict[str, dict[str, float]] = {}
        self._cells: list[int] = []
        self._slots: int | None = None

    def read(self, line: str) -> None:
        if _LLAMA_START in line:
            self._buffers, self._cells = {}, []
        elif found := _LLAMA_BUFFER.search(line):
            device, kind, size = found[1], found[2], float(found[3]) * MIB
            by = self._buffers.setdefault(kind, {})
            # A model with sliding windows has two KV caches on a device; a compute buffer that is reserved
            # again replaces the one before.
            by[device] = size + (by.get(device, 0.0) if kind in ("model", "KV", "RS") else 0.0)
        elif found := _LLAMA_CELLS.search(line):
            self._cells.append(int(found[1]) * int(found[2] or 1))
        elif found := _LLAMA_SLOTS.search(line):
            self._slots = int(found[2]) * (int(found[1]) if found[3] == "false" else 1)

    def memory(self) -> LogMemory:
        on_gpu = any(_is_gpu(device) for by in self._buffers.values() for device in by)
        sums = {kind: _sum(by, on_gpu) for kind, by in self._buffers.items()}
        caches = [sums[kind] for kind in ("KV", "RS") if kind in sums]
        return LogMemory(
            weights=sums.get("model"),
            kv_capacity=sum(caches) if caches else None,
            kv_tokens=max(self._cells, default=self._slots),
            working=sums.get("compute"),
        )


def _sum(by: Mapping[str, float], on_gpu: bool) -> int:
    return round(sum(size for device, size in by.items() if _is_gpu(device) == on_gpu))


def _is_gpu(device: str) -> bool:
    """CUDA0, ROCm1, Vulkan0, MTL0; not CPU, CPU_Mapped, CUDA_Host."""
    return not device.startswith("CPU") and not device.endswith("_Host")


def _who(line: str) -> str:
    """The worker that a line is of, without its process number, which changes with each start."""
    found = _WORKER.match(line)
    return _PID.sub("", found[1]) if found else ""
