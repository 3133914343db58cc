"""Settings: all that shapes one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from loadgen.config.base import Count, Model, Seconds
from loadgen.config.engine import EngineSpec
from loadgen.config.influxdb import InfluxdbSpec
from loadgen.config.telemetry import TelemetrySpec

CONFIG_FILE = "loadgen.toml"


class Timeouts(Model):
    """Limits of one request, in seconds."""

    connect_s: Seconds = Field(default=10.0, gt=0)
    first_token_s: Seconds = Field(default=300.0, gt=0)
    gap_s: Seconds = Field(default=60.0, gt=0)
    total_s: Seconds = Field(default=1800.0, gt=0)


class Settings(Model):
    """All that shapes one run of one scenario.

    `warmup_requests` is a number per user and engine; with `warmup = "steady"` more follow until TTFT is
    steady, for `warmup_max_s` at most. `salt = "off"` sends a file's prompts as they are, so that prefix
    caches may help: a measurement of its own kind. Fields that end in `_s` are seconds.
    """

    engines: tuple[EngineSpec, ...] = ()
    scenario: str = "concurrency"
    api: Literal["chat", "completions"] = "chat"
    users: Count = 16
    blocks: Count = 6
    turn_requests: Count = 64
    warmup: Literal["count", "steady"] = "count"
    warmup_requests: int = Field(default=2, ge=0, le=1_000_000)
    warmup_max_s: Seconds = Field(default=30.0, ge=0)
    cooldown_s: Seconds = Field(default=5.0, ge=0)
    cooldown_max_s: Seconds = Field(default=60.0, ge=0)
    cooldown_degrees: float = Field(default=5.0, ge=0)
    void_below_sm_clock_mhz: float | None = Field(default=None, gt=0)
    prompt_tokens: int = Field(default=50, ge=1, le=10_000_000)
    output_tokens: int = Field(default=256, ge=1, le=10_000_000)
    prompt_file: Path | None = None
    salt: Literal["on", "off"] = "on"
    seed: int = Field(default=1, ge=0, lt=2**32 - 1)  # llama.cpp: 32 bits, all ones (or -1) mean a random one
    arrival: Literal["burst", "staggered"] = "burst"
    thinking: Literal["off", "on"] = "off"
    temperature: float = Field(default=0.0, ge=0)
    residency: Literal["shared", "exclusive", "parallel"] = "shared"
    ready_timeout_s: Seconds = Field(default=600.0, gt=0)
    runs_dir: Path = Path("runs")
    timeouts: Timeouts = Timeouts()
    influxdb: InfluxdbSpec = InfluxdbSpec()
    telemetry: TelemetrySpec = TelemetrySpec()

    @model_validator(mode="after")
    def _unique_names(self) -> Settings:
        names = [e.name for e in self.engines]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(
                f"two engines are called {twice[0]!r}: give each --engine its own name (NAME=KIND:URL)"
            )
        if self.residency == "exclusive":
            for e in self.engines:
                if not e.start:
                    raise ValueError(
                        f"exclusive residency needs a start command for {e.name} in {CONFIG_FILE} "
                        f"([engines.{e.name}] start = '...')"
                    )
        return self

    def public_dict(self) -> dict[str, Any]:
        """The settings for the manifest: plain JSON types, and no header values (they may hold keys)."""
        data = self.model_dump(mode="json")
        for e in data["engines"]:
            e["headers"] = dict.fromkeys(e["headers"], "<set>")
        return data
