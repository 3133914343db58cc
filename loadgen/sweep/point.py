"""Point: what one step said of one engine, as far as it decides how the sweep goes on."""

from __future__ import annotations

from dataclasses import dataclass

MET = "met"
NOT_MET = "not met"
UNDECIDED = "not decidable"


@dataclass(frozen=True, slots=True)
class Point:
    """`load` is users, or a rate in requests/s; `throughput` tokens/s, None where no token came; `slo` MET,
    NOT_MET or UNDECIDED, None if no SLO was asked for. `believed`: the step's figures may be used for this
    engine. `failing`: its requests fail at this load."""

    load: float
    throughput: float | None
    slo: str | None = None
    believed: bool = True
    failing: bool = False

    @property
    def usable(self) -> bool:
        return self.believed and not self.failing and self.throughput is not None
