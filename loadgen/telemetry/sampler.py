"""Sampling the GPUs of this machine: two threads a GPU, so that neither a slow call nor a stuck driver holds
up the other GPUs, and the 40 ms of PCIe counters are not in every sample."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from loadgen.telemetry.beat import Beat
from loadgen.telemetry.nvml import GpuLost
from loadgen.telemetry.output import Write
from loadgen.telemetry.rows import NVML, SAMPLE_FIELDS, facts_row, note_row, sample_row

SLOW_BEAT_S = 5.0
LOST_BEAT_S = 10.0  # how often a lost GPU is asked again
STUCK_S = 5.0
STALE_S = 10.0


class GpuDevice(Protocol):
    """nvml.Device, as far as it is used here."""

    index: int
    unsupported: set[str]

    def facts(self) -> dict[str, Any]: ...
    def sample(self) -> dict[str, Any]: ...
    def slow_sample(self) -> dict[str, Any]: ...
    def take_notes(self) -> list[str]: ...


class Owner(Protocol):
    """processes.Owners: adds names and engines to a sample's processes."""

    def __call__(self, processes: list[dict[str, Any]]) -> list[dict[str, Any]]: ...
    def take_notes(self) -> list[str]: ...


class GpuSampler:
    """Samples GPUs at a beat and gives each row to `write`.

    What the slow beat (`slow_s`, PCIe, ECC counts, fan) has found is in the next sample and in no other.
    `owner` adds names and engines to a sample's processes.
    """

    def __init__(
        self,
        devices: Sequence[GpuDevice],
        *,
        host: str,
        interval_s: float,
        write: Write,
        owner: Owner | None = None,
        slow_s: float = SLOW_BEAT_S,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.interval_s = interval_s
        self._write = write
        self._host = host
        self._wall_ns = wall_ns
        self._gpus = [_Gpu(device, host, write, owner, wall_ns) for device in devices]
        self._slow_s = max(slow_s, interval_s)
        self._beats: list[Beat] = []
        self._stuck: dict[str, bool] = {}

    def open(self) -> list[dict[str, Any]]:
        """Read the facts and one whole sample of each GPU, all at once; write the facts and return them."""
        threads = [threading.Thread(target=gpu.open, daemon=True) for gpu in self._gpus]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [gpu.facts for gpu in self._gpus if gpu.facts]

    def start(self) -> None:
        now = time.monotonic()
        for n, gpu in enumerate(self._gpus):
            # Spread over the slow beat: eight GPUs' PCIe calls at once would only wait for each other.
            slow_at = now + self._slow_s * (1 + n / len(self._gpus))
            self._beats += [
                Beat(f"gpu-{gpu.index}", self.interval_s, gpu.beat, start_at=now),
                Beat(f"gpu-{gpu.index}-slow", self._slow_s, gpu.slow_beat, start_at=slow_at),
            ]
        watch = Beat("gpu-watch", 1.0, self._watch, start_at=now + 1.0)
        for beat in [*self._beats, watch]:
            beat.start()
        self._beats.append(watch)

    def stop(self, timeout_s: float = 2.5) -> None:
        """Stop all beats and take a last sample. A thread that is stuck in the driver is left behind."""
        deadline = time.monotonic() + timeout_s
        for beat in self._beats:
            beat.ask_to_stop()
        ended = {beat.name for beat in self._beats if beat.join_until(deadline)}
        last = [
            threading.Thread(target=gpu.beat, daemon=True)
            for gpu in self._gpus
            if f"gpu-{gpu.index}" in ended
        ]
        for thread in last:
            thread.start()
        for thread in last:
            thread.join(max(0.0, deadline - time.monotonic()))
        for beat in self._beats:
            if beat.missed and not beat.name.endswith(("slow", "watch")):
                self._note(f"{beat.name}: {beat.missed} samples left out, the driver took longer than a beat")

    def latest(self) -> list[dict[str, Any]]:
        """The last sample of each GPU, what the slow beat found last included; none of a GPU whose driver
        has not answered for a while."""
        oldest = time.monotonic() - max(STALE_S, 3 * self.interval_s)
        return [{**gpu.slow, **gpu.last} for gpu in self._gpus if gpu.last and gpu.last_at > oldest]

    def _watch(self) -> None:
        now = time.monotonic()
        limit = max(STUCK_S, 3 * self.interval_s)
        for beat in self._beats:
            since = beat.busy_since
            stuck = since is not None and now - since > limit
            if stuck != self._stuck.get(beat.name, False):
                self._stuck[beat.name] = stuck
                said = f"has not answered for {limit:g} s" if stuck else "answers again"
                self._note(f"{beat.name}: the driver {said}")

    def _note(self, text: str) -> None:
        self._write(note_row(self._wall_ns(), self._host, text))


class _Gpu:
    """One GPU's rows."""

    def __init__(
        self, device: GpuDevice, host: str, write: Write, owner: Owner | None, wall_ns: Callable[[], int]
    ) -> None:
        self.index = device.index
        self.facts: dict[str, Any] = {}
        self.slow: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        self.last_at = 0.0
        self._device = device
        self._host = host
        self._write = write
        self._owner = owner
        self._wall_ns = wall_ns
        self._new_slow: dict[str, Any] = {}
        self._lost_until = 0.0
        self._lost = False

    def open(self) -> None:
        try:
            values = self._device.facts()
            self._device.sample()  # what it lacks is known then
            self.slow = self._new_slow = self._device.slow_sample()
        except GpuLost as e:
            self._gone(e)
            return
        unsupported = [f for f in SAMPLE_FIELDS if f in self._device.unsupported]
        self.facts = facts_row(
            self._wall_ns(), self._host, self.index, values, source=NVML, unsupported=unsupported
        )
        self._write(self.facts)
        self._notes()

    def beat(self) -> None:
        if time.monotonic() < self._lost_until:
            return
        t_ns, began = self._wall_ns(), time.perf_counter()
        try:
            values = self._device.sample()
        except GpuLost as e:
            self._gone(e)
            return
        cost_ms = (time.perf_counter() - began) * 1e3
        if self._lost:
            self._lost = False
            self._note(f"GPU {self.index} gives samples again")
        if self._owner and values.get("processes"):
            values["processes"] = self._owner(values["processes"])
        slow, self._new_slow = self._new_slow, {}
        row = sample_row(t_ns, self._host, self.index, {**values, **slow}, source=NVML, cost_ms=cost_ms)
        self.last, self.last_at = row, time.monotonic()
        self._write(row)
        self._notes()

    def slow_beat(self) -> None:
        if self._lost:
            return
        try:
            self.slow = self._new_slow = self._device.slow_sample()
        except GpuLost:
            return  # the fast beat says so

    def _gone(self, error: GpuLost) -> None:
        self.last = {}
        self._lost_until = time.monotonic() + LOST_BEAT_S
        if not self._lost:
            self._lost = True
            self._note(str(error))

    def _notes(self) -> None:
        for text in self._device.take_notes():
            self._note(text)
        for text in self._owner.take_notes() if self._owner else ():
            self._write(note_row(self._wall_ns(), self._host, text))

    def _note(self, text: str) -> None:
        self._write(note_row(self._wall_ns(), self._host, text, self.index))
