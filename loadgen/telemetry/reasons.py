"""Why a GPU's clocks are lower than they could be: NVML's bit mask, by name. Pure.

Bits as in nvml.h (nvmlClocksEventReason*, called ThrottleReason before driver 535); DCGM's
CLOCKS_EVENT_REASONS has the same ones.
"""

from __future__ import annotations

from typing import Final

REASONS: Final[dict[int, str]] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
OTHER: Final = "other"  # a bit that came after this table was made
NAMES: Final[tuple[str, ...]] = (*REASONS.values(), OTHER)


def decode(mask: int) -> list[str]:
    """The names of the bits that are set, lowest bit first.

    >>> decode(0), decode(0x4), decode(0x48), decode(0x8000)
    ([], ['sw_power_cap'], ['hw_slowdown', 'hw_thermal_slowdown'], ['other'])
    """
    names = [name for bit, name in REASONS.items() if mask & bit]
    return [*names, OTHER] if mask & ~sum(REASONS) else names
