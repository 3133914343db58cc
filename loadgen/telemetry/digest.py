"""What a recording of samples comes to, a GPU at a time; nothing but sums is kept. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from loadgen.plain import clean, number, percent, plural


class Digest:
    """`add` each row; `lines` are sentences about every GPU that had a sample."""

    def __init__(self) -> None:
        self._gpus: dict[tuple[Any, ...], _Gpu] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        if row.get("kind") == "sample":
            key = (row["host"], row["gpu"], row.get("mig_instance"), row["source"])
            self._gpus.setdefault(key, _Gpu()).add(row)

    @property
    def samples(self) -> int:
        return sum(gpu.samples for gpu in self._gpus.values())

    def lines(self) -> list[str]:
        several = len({key[0] for key in self._gpus}) > 1
        out = []
        for (host, gpu, mig, _), sums in sorted(self._gpus.items(), key=lambda item: str(item[0])):
            where = f"{clean(host)} " if several else ""
            instance = f" {clean(mig)}" if mig else ""
            out.append(f"{where}GPU {gpu}{instance}: {sums.sentence()}")
        return out


class _Gpu:
    def __init__(self) -> None:
        self.samples = 0
        self._sum: dict[str, float] = {}
        self._count: Counter[str] = Counter()
        self._most: dict[str, float] = {}
        self._reasons: Counter[str] = Counter()
        self._last_energy: float | None = None
        self._energy_j = 0.0

    def add(self, row: Mapping[str, Any]) -> None:
        self.samples += 1
        for name in ("power_w", "utilization_percent", "temperature_c", "memory_used_bytes"):
            value = row.get(name)
            if isinstance(value, (int, float)):
                self._sum[name] = self._sum.get(name, 0.0) + value
                self._count[name] += 1
                self._most[name] = max(value, self._most.get(name, value))
        self._reasons.update(row.get("throttle_reasons", ()))
        energy = row.get("energy_j")
        if isinstance(energy, (int, float)):
            if self._last_energy is not None and energy >= self._last_energy:
                self._energy_j += energy - self._last_energy
            self._last_energy = energy

    def sentence(self) -> str:
        parts = [plural(self.samples, "sample")]
        for name, text in (("utilization_percent", "{} % busy"), ("power_w", "{} W")):
            if self._count[name]:
                parts.append(f"mean {text.format(number(self._sum[name] / self._count[name]))}")
        if self._energy_j:
            parts.append(f"{number(self._energy_j)} J")
        if "temperature_c" in self._most:
            parts.append(f"at most {number(self._most['temperature_c'])} C")
        if "memory_used_bytes" in self._most:
            parts.append(f"{number(self._most['memory_used_bytes'] / 2**30)} GiB")
        for name, n in sorted(self._reasons.items()):
            if name != "gpu_idle":
                parts.append(f"{name.replace('_', ' ')} in {percent(n / self.samples)} of them")
        return ", ".join(parts)
