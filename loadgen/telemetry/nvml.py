"""NVML, as thin as it goes: pynvml's calls behind one reader per GPU that survives what a driver lacks.

A call that a card or driver does not support leaves its fields out, for good, with one note; it never becomes
a 0. The library is imported in the process that samples, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from loadgen.telemetry.readings import FAST, SLOW, STATIC, Reading, cuda_version

# nvml.h, nvmlReturn_t.
NOT_SUPPORTED = 3
NO_PERMISSION = 4
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28

_NEVER = (NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED)
_GONE = {
    1: "NVML was shut down",
    DRIVER_NOT_LOADED: "its driver was unloaded",
    GPU_IS_LOST: "it has fallen off the bus (the driver says: GPU is lost); the machine needs a restart",
    RESET_REQUIRED: "the driver says that it needs a reset",
    GPU_NOT_FOUND: "the driver does not find it any more",
}
_NO_LIBRARY = {
    LIBRARY_NOT_FOUND: "there is no NVIDIA driver here (libnvidia-ml.so.1 is missing)",
    DRIVER_NOT_LOADED: "the NVIDIA driver is installed but not loaded (nvidia-smi should say the same)",
    NO_PERMISSION: "this user may not use the NVIDIA driver",
    LIB_RM_VERSION_MISMATCH: "the NVIDIA driver was updated and the old one still runs: restart the machine",
    OPERATING_SYSTEM: "the system has blocked the NVIDIA driver (in a container: was the GPU passed in?)",
}


class NvmlError(Exception):
    """NVML cannot be used: the text is one sentence."""


class GpuLost(Exception):
    """This GPU gives nothing any more: the text says why."""


def load() -> ModuleType:
    """pynvml, initialised. Raises NvmlError with what to do about it."""
    try:
        import pynvml
    except ImportError:
        raise NvmlError("the Python package nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except Exception as e:
        text = _NO_LIBRARY.get(_code(e)) or f"the NVIDIA driver cannot be used: {_said(e)}"
        raise NvmlError(text) from None
    module: ModuleType = pynvml
    return module


def open_devices(nvml: ModuleType, wanted: Iterable[int] = ()) -> tuple[list[Device], list[str]]:
    """The GPUs asked for (all, if none are), and a sentence for each that cannot be had. Raises NvmlError."""
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as e:
        raise NvmlError(f"the NVIDIA driver does not say how many GPUs there are: {_said(e)}") from None
    if count == 0:
        raise NvmlError("the NVIDIA driver is there, but no GPU that it drives")
    devices, notes = [], []
    for index in list(wanted) or range(count):
        if index >= count:
            there = "only GPU 0" if count == 1 else f"GPUs 0 to {count - 1}"
            notes.append(f"there is no GPU {index} here, {there}")
            continue
        try:
            devices.append(Device(nvml, index, nvml.nvmlDeviceGetHandleByIndex(index)))
        except Exception as e:
            notes.append(f"GPU {index} cannot be sampled: {_GONE.get(_code(e)) or _said(e)}")
    return devices, notes


class Device:
    """One GPU. Each of its methods may be called from a thread of its own.

    `unsupported` are fields that will not come; `take_notes` gives new sentences, each once.
    """

    def __init__(self, nvml: ModuleType, index: int, handle: Any) -> None:
        self.index = index
        self.unsupported: set[str] = set()
        self._nvml = nvml
        self._handle = handle
        self._skip: set[Reading] = set()
        self._call_of: dict[Reading, int] = {}  # which of its calls this driver knows
        self._notes: list[str] = []
        self._noted: set[tuple[str, int]] = set()

    def facts(self) -> dict[str, Any]:
        """The static facts, driver and CUDA version among them. Raises GpuLost."""
        values = self._read(STATIC)
        for field, call, convert in (
            ("driver", "nvmlSystemGetDriverVersion", str),
            ("cuda", "nvmlSystemGetCudaDriverVersion_v2", cuda_version),
        ):
            try:
                values[field] = convert(getattr(self._nvml, call)())
            except Exception:
                self.unsupported.add(field)
        if values.get("mig_enabled"):
            self._notes.append(
                f"GPU {self.index} is split by MIG: NVML gives no utilisation for it; "
                "dcgm-exporter (telemetry.dcgm) has figures for each instance"
            )
        return values

    def sample(self) -> dict[str, Any]:
        """What changes quickly. Raises GpuLost."""
        return self._read(FAST)

    def slow_sample(self) -> dict[str, Any]:
        """PCIe throughput (20 ms a call) and what changes seldom. Raises GpuLost."""
        return self._read(SLOW)

    def take_notes(self) -> list[str]:
        notes, self._notes = self._notes, []
        return notes

    def _read(self, readings: tuple[Reading, ...]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for reading in readings:
            if reading in self._skip:
                continue
            try:
                values.update(reading.convert(self._call(reading)))
            except Exception as e:
                self._failed(reading, e)
        return values

    def _call(self, reading: Reading) -> Any:
        known = self._call_of.get(reading)
        last = len(reading.calls) - 1
        for n in range(last + 1) if known is None else (known,):
            try:
                names = (*reading.args, *(reading.first_args if n == 0 else ()))
                args = [getattr(self._nvml, name) for name in names]
                value = getattr(self._nvml, reading.calls[n])(self._handle, *args)
            except Exception as e:
                if n == last or known is not None or not _missing(e):
                    raise
            else:
                self._call_of[reading] = n
                return value
        raise AssertionError("a reading has a call")

    def _failed(self, reading: Reading, error: Exception) -> None:
        code = _code(error)
        if code in _GONE:
            raise GpuLost(f"GPU {self.index} gives no samples: {_GONE[code]}") from None
        fields = ", ".join(reading.fields)
        if code in _NEVER or _missing(error):
            self._skip.add(reading)
            self.unsupported.update(reading.fields)
        elif code == NO_PERMISSION:
            self._skip.add(reading)
            self.unsupported.update(reading.fields)
            self._notes.append(f"GPU {self.index}: {fields} needs more rights than this user has")
        elif (reading.calls[0], code) not in self._noted:
            # It may work the next time: absent in this sample, and said once.
            self._noted.add((reading.calls[0], code))
            self._notes.append(f"GPU {self.index}: {fields} could not be read: {_said(error)}")


def _missing(error: Exception) -> bool:
    """The driver or the Python package is older than the call."""
    return (
        _code(error) == FUNCTION_NOT_FOUND
        or isinstance(error, AttributeError)
        or type(error).__name__ == "NVMLLibraryMismatchError"
    )


def _code(error: Exception) -> int:
    value = getattr(error, "value", None)
    return value if isinstance(value, int) else -1


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
