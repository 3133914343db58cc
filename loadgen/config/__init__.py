"""One validated settings object: defaults < loadgen.toml < environment < flags.

`Settings` is what a run is made with; the manifest stores it (`public_dict`), without keys. Every error
of a person's making is a `ConfigError` whose text says what is wrong and what to write instead.
"""

from loadgen.config.base import ConfigError
from loadgen.config.engine import KINDS, EngineSpec, Kind
from loadgen.config.influxdb import InfluxdbSpec
from loadgen.config.load import DEFAULT_ENGINES, engine_texts, load_settings, parse_engine_flag
from loadgen.config.openloop import OpenLoopSpec
from loadgen.config.settings import CONFIG_FILE, Settings, Timeouts
from loadgen.config.telemetry import TelemetrySpec

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_ENGINES",
    "KINDS",
    "ConfigError",
    "EngineSpec",
    "InfluxdbSpec",
    "Kind",
    "OpenLoopSpec",
    "Settings",
    "TelemetrySpec",
    "Timeouts",
    "engine_texts",
    "load_settings",
    "parse_engine_flag",
]
