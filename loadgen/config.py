"""One validated settings object: defaults < loadgen.toml < environment < flags.

`Settings` is what a run is made with; the manifest stores it (`public_dict`), without keys. Every error
of a person's making is a `ConfigError` whose text says what is wrong and what to write instead.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

Kind = Literal["vllm", "llamacpp", "openai"]
KINDS: tuple[str, ...] = ("vllm", "llamacpp", "openai")

DEFAULT_ENGINES = (
    ("vllm", "vllm", "http://127.0.0.1:8000", "VLLM_URL"),
    ("llamacpp", "llamacpp", "http://127.0.0.1:8001", "LLAMACPP_URL"),
)
CONFIG_FILE = "loadgen.toml"
# Fields that are the program's own to set.
_NOT_IN_FILE = {"scenario"}
_NOT_IN_TABLE = {"name"}


class ConfigError(Exception):
    """Bad input from a person: the text is one clear sentence."""


class _Model(BaseModel):
    # No infinity and no NaN: neither JSON nor a timer can hold them.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`users = true` is a slip; pydantic would take it for 1."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in (int, float):
            raise ValueError("a number is wanted here, not true or false")
        return value


_M = TypeVar("_M", bound=_Model)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110, section 5.6.2
_OWN_FIELDS = {
    "model": ", name it as model of the engine",
    "messages": ", prompts of your own come from prompt_file",
    "prompt": ", prompts of your own come from prompt_file",
    "stream": ": what is measured is a stream",
}
# Limits far above any use, so that a slip of the finger fills no memory and overflows no timer.
_Count = Annotated[int, Field(ge=1, le=1_000_000)]
_Seconds = Annotated[float, Field(le=1_000_000)]


class EngineSpec(_Model):
    """One endpoint under test.

    `url` is the server's root, without `/v1`. The API key is read from the environment variable named in
    `api_key_env` and never stored. `start`, `stop` and `ready` are shell commands for exclusive residency:
    `start` runs in the background until the turn's end, `ready` is polled until it exits with 0 (without
    it, the engine's /health is polled).
    """

    name: str
    kind: Kind
    url: str
    model: str | None = Field(default=None, min_length=1)
    api_key_env: str | None = Field(default=None, min_length=1)
    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    verify_tls: bool = True
    ca_file: str | None = None
    start: str | None = None
    stop: str | None = None
    ready: str | None = None
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
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address like http://127.0.0.1:8000")
        try:
            _ = parts.port
        except ValueError:
            raise ValueError(f"{url!r} has a port that is not a number from 0 to 65535") from None
        if parts.username or parts.password:
            raise ValueError("keys do not belong in the address: name the variable in api_key_env")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} has a query or fragment, an engine's address has none")
        path = parts.path.rstrip("/")
        return f"{parts.scheme}://{parts.netloc}{path.removesuffix('/v1')}"

    def api_key(self, env: Mapping[str, str] | None = None) -> str | None:
        """The key from the environment; ConfigError when `api_key_env` names a variable that is not set."""
        env = os.environ if env is None else env
        if self.api_key_env is None:
            return None
        key = env.get(self.api_key_env)
        if not key:
            raise ConfigError(f"engine {self.name}: the environment variable {self.api_key_env} is not set")
        return key


class Timeouts(_Model):
    """Limits of one request, in seconds."""

    connect_s: _Seconds = Field(default=10.0, gt=0)
    first_token_s: _Seconds = Field(default=300.0, gt=0)
    gap_s: _Seconds = Field(default=60.0, gt=0)
    total_s: _Seconds = Field(default=1800.0, gt=0)


class Settings(_Model):
    """All that shapes one run of one scenario.

    `warmup_requests` is a number per user and engine; with `warmup = "steady"` more follow until TTFT is
    steady, for `warmup_max_s` at most. `salt = "off"` sends a file's prompts as they are, so that prefix
    caches may help: a measurement of its own kind. Fields that end in `_s` are seconds.
    """

    engines: tuple[EngineSpec, ...] = ()
    scenario: str = "concurrency"
    api: Literal["chat", "completions"] = "chat"
    users: _Count = 16
    blocks: _Count = 6
    turn_requests: _Count = 64
    warmup: Literal["count", "steady"] = "count"
    warmup_requests: int = Field(default=2, ge=0, le=1_000_000)
    warmup_max_s: _Seconds = Field(default=30.0, ge=0)
    cooldown_s: _Seconds = Field(default=5.0, ge=0)
    prompt_tokens: int = Field(default=50, ge=1, le=10_000_000)
    output_tokens: int = Field(default=256, ge=1, le=10_000_000)
    prompt_file: Path | None = None
    salt: Literal["on", "off"] = "on"
    seed: int = Field(default=1, ge=0, lt=2**32 - 1)  # llama.cpp: 32 bits, all ones (or -1) mean a random one
    arrival: Literal["burst", "staggered"] = "burst"
    thinking: Literal["off", "on"] = "off"
    temperature: float = Field(default=0.0, ge=0)
    residency: Literal["shared", "exclusive", "parallel"] = "shared"
    ready_timeout_s: _Seconds = Field(default=600.0, gt=0)
    runs_dir: Path = Path("runs")
    timeouts: Timeouts = Timeouts()

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


def parse_engine_flag(text: str) -> EngineSpec:
    """`NAME=KIND:URL`, or `KIND:URL` with the kind as the name.

    >>> parse_engine_flag("fp8=vllm:http://gpu:8000").url
    'http://gpu:8000'
    """
    name, eq, rest = text.strip().partition("=")
    if not eq or ":" in name:
        name, rest = "", text.strip()
    kind, colon, url = rest.partition(":")
    if kind not in KINDS or not colon or "://" not in url:
        raise ConfigError(
            f"--engine {text!r} is not NAME=KIND:URL (kinds: {', '.join(KINDS)}), "
            "for example fp8=vllm:http://127.0.0.1:8000"
        )
    return _build(EngineSpec, {"name": name or kind, "kind": kind, "url": url}, f"--engine {text}")


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    defaults: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    config_file: Path | None = None,
) -> Settings:
    """Settings from all sources, the later ones winning: `defaults` (the scenario's own), the file
    (`config_file`, else ./loadgen.toml where it exists), the environment, `flags`.

    `flags` are Settings field names; None means not given; `engines` there is a list of NAME=KIND:URL
    texts that replaces the engines of file and environment, except that an engine of the file with the
    same name lends its other settings (key, model, commands). Raises ConfigError.
    """
    env = os.environ if env is None else env
    values: dict[str, Any] = dict(defaults or {})
    file_values, source = _read_file(config_file)
    for key in _NOT_IN_FILE & file_values.keys():
        raise ConfigError(f"{source}: {key} is not a setting, it comes from the workload that is run")
    file_engines = file_values.pop("engines", {})
    if not isinstance(file_engines, dict) or not all(isinstance(e, dict) for e in file_engines.values()):
        raise ConfigError(f"{source}: engines are tables, [engines.NAME] with kind and url")
    for name, table in file_engines.items():
        for key in _NOT_IN_TABLE & table.keys():
            raise ConfigError(f"{source} [engines.{name}]: {key} is not a setting, the table has the name")
    _merge(values, file_values)

    engines: list[EngineSpec] = [
        _build(EngineSpec, {"name": n, **spec}, f"{source} [engines.{n}]") for n, spec in file_engines.items()
    ]
    by_kind_env = {name: env[var] for name, _, _, var in DEFAULT_ENGINES if env.get(var)}
    if by_kind_env:
        known = {e.name: e for e in engines}
        for name, kind, _, var in DEFAULT_ENGINES:
            if name in by_kind_env:
                base = known[name].model_dump() if name in known else {"name": name, "kind": kind}
                known[name] = _build(EngineSpec, {**base, "url": by_kind_env[name]}, var)
        engines = list(known.values())

    flag_values = {k: v for k, v in (flags or {}).items() if v is not None}
    texts = [t for t in flag_values.pop("engines", []) or [] if t.strip()]
    if texts:
        known = {e.name: e for e in engines}
        engines = []
        for text in texts:
            spec = parse_engine_flag(text)
            if spec.name in known:
                base = known[spec.name].model_dump()
                spec = _build(
                    EngineSpec,
                    {**base, "kind": spec.kind, "url": spec.url, "named": True},
                    f"--engine {text}",
                )
            engines.append(spec)
    if not engines:
        engines = [
            EngineSpec(name=name, kind=kind, url=url, named=False)  # type: ignore[arg-type]
            for name, kind, url, _ in DEFAULT_ENGINES
        ]
    _merge(values, flag_values)
    values["engines"] = engines
    return _build(Settings, values, source)


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            into[key] = {**into[key], **value}
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _read_file(path: Path | None) -> tuple[dict[str, Any], str]:
    if path is None:
        path = Path(CONFIG_FILE)
        if not os.path.lexists(path):  # a link to nowhere is somebody's mistake
            return {}, "settings"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig")), str(path)  # some editors add a BOM
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(f"{path} cannot be read: {e}") from None
    except tomllib.TOMLDecodeError as e:
        raise ConfigError(f"{path} is not valid TOML: {e}") from None


def _build(model: type[_M], values: Mapping[str, Any], source: str) -> _M:
    try:
        return model(**values)
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(str(p) for p in first["loc"])
        text = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            text = _unknown(model, first["loc"])
        raise ConfigError(f"{source}: {where + ': ' if where else ''}{text}") from None


def _unknown(model: type[_Model], loc: tuple[int | str, ...]) -> str:
    """What to say of a setting that does not exist at this place."""
    table: type[_Model] = model
    for part in loc[:-1]:
        inner: Any = table.model_fields[str(part)].annotation
        table = inner
    if table is not Settings and loc[-1] in Settings.model_fields.keys() - _NOT_IN_FILE:
        return "this belongs at the top of the file, before the first [table]"
    known = sorted(table.model_fields.keys() - _NOT_IN_FILE - _NOT_IN_TABLE)
    return f"there is no such setting (known: {', '.join(known)})"
