"""What a measurement is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tag:
    """A tag has few values. One that does not apply to a point is absent."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Field:
    """`kind` is the type in InfluxDB. `unit` is empty for counts, shares and text."""

    name: str
    meaning: str
    unit: str = ""
    kind: Literal["float", "integer", "string"] = "float"


@dataclass(frozen=True)
class Measurement:
    """`source` names the files of the run directory that its points are made from, `time` their time."""

    name: str
    meaning: str
    source: str
    time: str
    tags: tuple[Tag, ...]
    fields: tuple[Field, ...]


def integer(name: str, meaning: str, unit: str = "") -> Field:
    return Field(name, meaning, unit, "integer")


def text(name: str, meaning: str) -> Field:
    return Field(name, meaning, "", "string")


RUN = Tag("run", "name of the run's directory")
SCENARIO = Tag("scenario", "workload: `single_user`, `long_prompt`, `concurrency`, ...")
ENGINE = Tag("engine", "the engine's name in the settings")
MODEL = Tag("model", "model, as the server calls it")
WORKER = Tag("worker", "process that generated the load: `local`, or a Locust worker's name")
LOAD_HOST = Tag("host", "machine that generated the load")
GPU_HOST = Tag("host", "machine that the GPU is in")
