"""TelemetrySpec: which GPUs and engine counters are watched during a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from loadgen.config.address import checked_url
from loadgen.config.base import Model, Seconds
from loadgen.config.influxdb import read_secret


class TelemetrySpec(Model):
    """`gpu = "auto"` samples the GPUs of this machine where there are any, `"on"` refuses a run without them.

    `gpus` are NVML indices, none means all. `agents` are addresses of `loadgen telemetry --listen` on GPU
    hosts, which want the token in `token_env` (else `token_file`); `dcgm` are dcgm-exporters'
    addresses. `engine_metrics` scrapes each engine's /metrics. All are read every `interval_s` seconds.
    """

    gpu: Literal["auto", "on", "off"] = "auto"
    gpus: tuple[int, ...] = ()
    agents: tuple[str, ...] = ()
    dcgm: tuple[str, ...] = ()
    token_env: str = Field(default="LOADGEN_TELEMETRY_TOKEN", min_length=1)
    token_file: Path | None = None
    interval_s: Seconds = Field(default=1.0, ge=0.1)
    engine_metrics: Literal["on", "off"] = "on"

    @field_validator("gpus")
    @classmethod
    def _indices(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        if any(g < 0 for g in gpus):
            raise ValueError("GPUs are numbered from 0")
        return tuple(sorted(set(gpus)))

    @field_validator("agents")
    @classmethod
    def _agent_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked_url(u, "http://gpuhost:9467") for u in urls)

    @field_validator("dcgm")
    @classmethod
    def _dcgm_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked_url(u, "http://gpuhost:9400/metrics") for u in urls)

    def token(self, env: Mapping[str, str] | None = None) -> str:
        """The agents' token. Raises ConfigError if neither variable nor file has one."""
        env = os.environ if env is None else env
        return read_secret(env, self.token_env, self.token_file, "a telemetry agent")
