"""EngineSpec: one endpoint under test."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from loadgen.config.address import checked_url
from loadgen.config.base import ConfigError, Model

Kind = Literal["vllm", "llamacpp", "openai"]
KINDS: tuple[str, ...] = ("vllm", "llamacpp", "openai")
MOST_REPLICAS = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110, section 5.6.2
_OWN_FIELDS = {
    "model": ", name it as model of the engine",
    "messages": ", prompts of your own come from prompt_file",
    "prompt": ", prompts of your own come from prompt_file",
    "stream": ": what is measured is a stream",
}


class EngineSpec(Model):
    """One endpoint under test.

    `url` is the server's root, without `/v1`, and `replicas` are the roots of further servers of the same
    model: requests go to all of them in turn. The API key is read from the environment variable named in
    `api_key_env` and never stored. `start`, `stop` and `ready` are shell commands for exclusive residency:
    `start` runs in the background until the turn's end, `ready` is polled until it exits with 0 (without
    it, the engine's /health is polled). `log` is the engine's own log, a file on this machine that is read
    after the run: it alone tells the bytes of weights and KV cache.
    """

    name: str
    kind: Kind
    url: str
    replicas: tuple[str, ...] = ()
    model: str | None = Field(default=None, min_length=1)
    api_key_env: str | None = Field(default=None, min_length=1)
    headers: dict[str, str] = Field(default={})
    extra_body: dict[str, Any] = Field(default={})
    verify_tls: bool = True
    ca_file: str | None = None
    start: str | None = None
    stop: str | None = None
    ready: str | None = None
    log: str | None = Field(default=None, min_length=1)
    named: bool = True  # False: a default endpoint that nobody asked for; skipped when it does not answer

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"an engine cannot be called {name!r}: take up to 64 letters, digits and . _ + -, "
                "the first one a letter or digit (no accents)"
            )
        return name

    @field_validator("headers")
    @classmethod
    def _header_names(cls, headers: dict[str, str]) -> dict[str, str]:
        for name in headers:
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of an HTTP header")
        return headers

    @field_validator("extra_body")
    @classmethod
    def _not_the_request_itself(cls, body: dict[str, Any]) -> dict[str, Any]:
        for field, instead in _OWN_FIELDS.items():
            if field in body:
                raise ValueError(f"{field} is loadgen's own to set{instead}")
        return body

    @field_validator("url")
    @classmethod
    def _root_url(cls, url: str) -> str:
        return checked_url(url, "http://127.0.0.1:8000").removesuffix("/v1")

    @field_validator("replicas")
    @classmethod
    def _root_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(checked_url(url, "http://127.0.0.1:8000").removesuffix("/v1") for url in urls)

    @model_validator(mode="after")
    def _each_once(self) -> EngineSpec:
        if len(set(self.urls)) < len(self.urls):
            raise ValueError(f"engine {self.name} has the same address twice")
        if len(self.urls) > MOST_REPLICAS:
            raise ValueError(f"engine {self.name} has more than {MOST_REPLICAS} addresses")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        """All addresses."""
        return (self.url, *self.replicas)

    def at(self, replica: int) -> EngineSpec:
        """The engine as if it had this one of its addresses alone."""
        return self.model_copy(update={"url": self.urls[replica], "replicas": ()})

    def api_key(self, env: Mapping[str, str] | None = None) -> str | None:
        """The key from the environment; ConfigError when `api_key_env` names a variable that is not set."""
        env = os.environ if env is None else env
        if self.api_key_env is None:
            return None
        key = env.get(self.api_key_env)
        if not key:
            raise ConfigError(f"engine {self.name}: the environment variable {self.api_key_env} is not set")
        return key
