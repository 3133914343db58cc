"""What sweep.json must hold to be read: one of another version, or that was edited, is refused whole."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Number = Annotated[float, Field(ge=0, le=1e15)]
Whole = Annotated[int, Field(ge=0, le=2**63)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class Quantiles(_Shape):
    n: Whole
    p50: Number | None
    p95: Number | None
    p99: Number | None


class FindingShape(_Shape):
    check: str
    level: str
    evidence: str


class Figures(_Shape):
    throughput_tokens_per_s: Number | None
    ttft_ms: Quantiles
    tpot_ms: Quantiles
    e2e_ms: Quantiles
    requests: Whole
    failed: Whole
    failed_by_kind: dict[str, Whole]
    validity: str
    findings: list[FindingShape]
    server: str | None = None
    slo: str | None = None
    slo_sentences: list[str] = []


class Step(_Shape):
    load: Annotated[float, Field(gt=0, le=1e9)]
    run: str
    searching: bool
    seconds: Number
    engines: dict[str, Figures]


class Engine(_Shape):
    flag: str


class SweepShape(_Shape):
    name: str
    state: str
    start_ns: Whole
    end_ns: Whole | None
    workload: str
    flags: list[str]
    asked_engines: list[str]
    slo: list[str]
    blocks: Whole
    requests_per_user: Whole
    turn_requests: Whole
    turn_seconds: Number = 0.0
    loads: Annotated[list[Annotated[float, Field(gt=0, le=1e9)]], Field(min_length=1)]
    margin: Annotated[float, Field(gt=1, le=2)]
    refine: Whole
    stop: bool
    engines: dict[str, Engine]
    steps: list[Step]


def check_shape(data: Any) -> None:
    """Raises ValueError with a sentence about the first thing that is wrong."""
    try:
        SweepShape.model_validate(data)
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ValueError(f"{where}: {first['msg']}") from None
