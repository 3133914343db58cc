"""Settings from defaults, file, environment and flags, the later ones winning."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from loadgen.config.base import ConfigError, Model
from loadgen.config.engine import KINDS, EngineSpec
from loadgen.config.influxdb import InfluxdbSpec
from loadgen.config.settings import CONFIG_FILE, Settings
from loadgen.config.telemetry import TelemetrySpec

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

DEFAULT_ENGINES = (
    ("vllm", "vllm", "http://127.0.0.1:8000", "VLLM_URL"),
    ("llamacpp", "llamacpp", "http://127.0.0.1:8001", "LLAMACPP_URL"),
)
AGENTS_ENV = "LOADGEN_TELEMETRY_AGENTS"
INFLUXDB_ENV = {"url": "INFLUXDB_URL", "org": "INFLUXDB_ORG", "bucket": "INFLUXDB_BUCKET"}
# Fields that are the program's own to set.
_NOT_IN_FILE = {"scenario"}
_NOT_IN_TABLE = {"name"}

_M = TypeVar("_M", bound=Model)


def parse_engine_flag(text: str) -> EngineSpec:
    """`NAME=KIND:URL`, or `KIND:URL` with the kind as the name; `NAME=KIND:URL,URL` of one with replicas.

    >>> parse_engine_flag("fp8=vllm:http://gpu:8000").url
    'http://gpu:8000'
    """
    name, eq, rest = text.strip().partition("=")
    if not eq or ":" in name:
        name, rest = "", text.strip()
    kind, colon, urls = rest.partition(":")
    url, *replicas = (part.strip() for part in urls.split(","))
    if kind not in KINDS or not colon or "://" not in url:
        raise ConfigError(
            f"--engine {text!r} is not NAME=KIND:URL (kinds: {', '.join(KINDS)}), "
            "for example fp8=vllm:http://127.0.0.1:8000"
        )
    return _build(
        EngineSpec, {"name": name or kind, "kind": kind, "url": url, "replicas": replicas}, f"--engine {text}"
    )


def engine_texts(text: str) -> list[str]:
    """One text an engine: after a comma comes another engine, or an address of the same one.

    >>> engine_texts("a=vllm:http://x:1,http://y:2, b=llamacpp:http://z:3,")
    ['a=vllm:http://x:1,http://y:2', 'b=llamacpp:http://z:3']
    """
    texts: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if texts and part.startswith(("http://", "https://")):
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    return texts


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
                known[name] = _build(EngineSpec, {**base, "url": by_kind_env[name], "replicas": ()}, var)
        engines = list(known.values())

    influxdb = {key: env[var] for key, var in INFLUXDB_ENV.items() if env.get(var)}
    if influxdb:
        table = values.get("influxdb")
        base = table if isinstance(table, dict) else {}
        for key in influxdb:  # each by itself, so that the one that is wrong is named
            _build(InfluxdbSpec, {**base, key: influxdb[key]}, INFLUXDB_ENV[key])
        _merge(values, {"influxdb": influxdb})

    agents = tuple(part.strip() for part in env.get(AGENTS_ENV, "").split(",") if part.strip())
    if agents:
        _build(TelemetrySpec, {"agents": agents}, AGENTS_ENV)
        _merge(values, {"telemetry": {"agents": agents}})

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
                    {**base, "kind": spec.kind, "url": spec.url, "replicas": spec.replicas, "named": True},
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


def _unknown(model: type[Model], loc: tuple[int | str, ...]) -> str:
    """What to say of a setting that does not exist at this place."""
    table: type[Model] = model
    for part in loc[:-1]:
        inner: Any = table.model_fields[str(part)].annotation
        table = inner
    if table is not Settings and loc[-1] in Settings.model_fields.keys() - _NOT_IN_FILE:
        return "this belongs at the top of the file, before the first [table]"
    known = sorted(table.model_fields.keys() - _NOT_IN_FILE - _NOT_IN_TABLE)
    return f"there is no such setting (known: {', '.join(known)})"
