"""What the arrivals of an open loop are like."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from loadgen.config.base import Count, Model, Seconds

LEAST_RATE = 1e-6  # one request in eleven days


class OpenLoopSpec(Model):
    """`rate` is requests a second; `turn_s` the length of a turn's schedule in seconds (None: it has
    `turn_requests` requests). `burstiness` is the coefficient of variation of the gaps between gamma
    arrivals. `max_in_flight` is a guard for generator and servers: a request that is due beyond it is
    dropped, and the run is void.

    `trace` is a file of recorded arrivals to replay, from `trace_start_s` on, `speed_up` times as fast,
    without requests of more than `longest` tokens, prompt and answer together.
    """

    rate: float | None = Field(default=None, ge=LEAST_RATE, le=100_000)
    turn_s: Seconds | None = Field(default=None, ge=0.001)
    burstiness: float = Field(default=1.0, ge=0.01, le=100)
    max_in_flight: Count = 1000
    trace: Path | None = None
    trace_start_s: float = Field(default=0.0, ge=0, le=1e9)
    speed_up: float = Field(default=1.0, ge=1e-6, le=1e6)
    longest: int | None = Field(default=None, ge=2, le=20_000_000)

    @model_validator(mode="after")
    def _one_source(self) -> OpenLoopSpec:
        if self.trace is None:
            for name, default in (("trace_start_s", 0.0), ("speed_up", 1.0), ("longest", None)):
                if getattr(self, name) != default:
                    raise ValueError(f"{name} belongs to a trace, and there is none")
        elif self.rate is not None:
            raise ValueError("a trace has its own rate: leave the rate away, or take speed_up")
        return self
