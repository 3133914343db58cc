"""InfluxdbSpec: where results are delivered to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, field_validator

from loadgen.config.address import checked_url
from loadgen.config.base import ConfigError, Model


class InfluxdbSpec(Model):
    """One InfluxDB bucket. Without a `url` nothing is delivered.

    The token is read from the environment variable named in `token_env`, else from `token_file`, and never
    stored. InfluxDB 1.8 takes `user:password` as its token, and `database/retention-policy` as its bucket.
    """

    url: str | None = None
    org: str = Field(default="loadgen", min_length=1)
    bucket: str = Field(default="loadgen", min_length=1)
    token_env: str = Field(default="INFLUXDB_TOKEN", min_length=1)
    token_file: Path | None = None
    verify_tls: bool = True
    ca_file: str | None = None

    @field_validator("url")
    @classmethod
    def _root_url(cls, url: str | None) -> str | None:
        return checked_url(url, "http://127.0.0.1:8086") if url else None

    def token(self, env: Mapping[str, str] | None = None) -> str:
        """Raises ConfigError if neither variable nor file has one."""
        env = os.environ if env is None else env
        return read_secret(env, self.token_env, self.token_file, f"InfluxDB at {self.url}")


def read_secret(env: Mapping[str, str], variable: str, file: Path | None, whose: str) -> str:
    """A key from the environment, else from a file. Raises ConfigError with what to do about it."""
    if value := env.get(variable, "").strip():
        return value
    if file is None:
        raise ConfigError(f"{whose} needs a token: set the environment variable {variable}")
    try:
        value = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) else "it is not text"
        raise ConfigError(f"{whose}: its token file {file} cannot be read: {why}") from None
    if not value:
        raise ConfigError(f"{whose}: its token file {file} is empty")
    return value
