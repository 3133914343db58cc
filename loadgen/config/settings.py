"""Settings: all that shapes one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from loadgen.config.base import Count, Model, Seconds
from loadgen.config.engine import EngineSpec
from loadgen.config.influxdb import InfluxdbSpec
from loadgen.config.openloop import OpenLoopSpec
from loadgen.config.telemetry import TelemetrySpec
from loadgen.workload.arrivals import GAMMA, PROCESSES, TRACE
from loadgen.workload.classes import MOST, TrafficClass, parse_mix
from loadgen.workload.shapes import HAND, KNEE, Shape, parse_shape

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
    caches may help: a measurement of its own kind. `slo` is what loadgen.slo reads; it decides nothing while
    a run goes on, but what the live page calls good. Fields that end in `_s` are seconds.

    With an `arrival` of poisson, constant, gamma or trace the load is an open loop: `open_loop` says at what
    rate requests come, and there are no `users`.

    `prompt_tokens` may be a list: then each turn has `turn_requests` requests of every length, and
    `prompt_lengths` holds them (`prompt_tokens` the longest). `mix` names traffic classes with their shares
    and lengths (loadgen.workload.classes). With `exchanges` above 1 requests are conversations of so many
    exchanges, with `system_tokens` of a system prompt that all of them share, and `think_s` seconds on
    average between an answer and the next question; `turn_requests`, rounded up, counts exchanges.

    With a `shape` (loadgen.workload.shapes) a turn lasts as long as that and the number of users varies; then
    `users` is the highest, and `turn_requests` how many different prompts there are. `level_s` is the length
    of its levels where the shape itself does not say.
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
    prompt_lengths: tuple[int, ...] = ()
    mix: str | None = None
    exchanges: int = Field(default=1, ge=1, le=1000)
    system_tokens: int = Field(default=0, ge=0, le=10_000_000)
    think_s: Seconds = Field(default=0.0, ge=0)
    shape: str | None = None
    level_s: Seconds = Field(default=30.0, ge=1)
    prompt_file: Path | None = None
    salt: Literal["on", "off"] = "on"
    seed: int = Field(default=1, ge=0, lt=2**32 - 1)  # llama.cpp: 32 bits, all ones (or -1) mean a random one
    arrival: Literal["burst", "staggered", "poisson", "constant", "gamma", "trace"] = "burst"
    open_loop: OpenLoopSpec = OpenLoopSpec()
    thinking: Literal["off", "on"] = "off"
    temperature: float = Field(default=0.0, ge=0)
    residency: Literal["shared", "exclusive", "parallel"] = "shared"
    ready_timeout_s: Seconds = Field(default=600.0, gt=0)
    slo: str | None = None
    runs_dir: Path = Path("runs")
    timeouts: Timeouts = Timeouts()
    influxdb: InfluxdbSpec = InfluxdbSpec()
    telemetry: TelemetrySpec = TelemetrySpec()

    @model_validator(mode="before")
    @classmethod
    def _several_lengths(cls, values: Any) -> Any:
        """`prompt_tokens` as a list, or as the text of one: `2000,8000`."""
        given = values.get("prompt_tokens") if isinstance(values, dict) else None
        if isinstance(given, str):
            given = [part.strip() for part in given.split(",") if part.strip()]
        if not isinstance(given, (list, tuple)):
            return values
        return {**values, **_lengths(given)}

    @field_validator("mix")
    @classmethod
    def _a_mix(cls, mix: str | None) -> str | None:
        if mix is not None:
            parse_mix(mix)
        return mix

    @field_validator("shape")
    @classmethod
    def _read_shape(cls, shape: str | None) -> str | None:
        if shape is not None:
            parse_shape(shape)
        return shape

    @model_validator(mode="after")
    def _one_kind_of_prompts(self) -> Settings:
        kinds = {
            "prompts of a file": self.prompt_file is not None,
            "a mix": self.mix is not None,
            "several prompt lengths": bool(self.prompt_lengths),
            "conversations": self.exchanges > 1,
        }
        several = [kind for kind, there in kinds.items() if there]
        if len(several) > 1:
            raise ValueError(f"{several[0]} and {several[1]} don't go together: leave one of them away")
        if self.prompt_lengths and self.users > 1:
            raise ValueError(
                f"several prompt lengths are measured by one user, so that they don't mix, and users are "
                f"{self.users}: take one user, a run for each length, or --mix"
            )
        if self.exchanges > 1:
            if self.api != "chat":
                raise ValueError("conversations need the chat endpoint: leave --api completions away")
            conversations = -(-self.turn_requests // self.exchanges)
            object.__setattr__(self, "turn_requests", conversations * self.exchanges)
        return self

    @model_validator(mode="after")
    def _closed_or_open(self) -> Settings:
        spec = self.open_loop
        if spec.trace is not None:
            object.__setattr__(self, "arrival", TRACE)
        elif self.arrival == TRACE:
            raise ValueError("arrival: a trace is replayed by naming its file: open_loop.trace")
        if not self.open:
            for name in ("rate", "turn_s"):
                if getattr(spec, name) is not None:
                    raise ValueError(
                        f"open_loop.{name}: {self.arrival} arrivals are those of users who wait for their "
                        f"answers; with an arrival of {', '.join(PROCESSES)} requests come at a rate"
                    )
        else:
            if self.exchanges > 1 or self.prompt_lengths:
                what = "conversations" if self.exchanges > 1 else "several prompt lengths"
                raise ValueError(f"{what} are of users who wait for their answers: take an arrival of burst")
            if self.mix is not None and spec.trace is not None:
                raise ValueError("a trace has lengths of its own: leave mix away")
            if spec.burstiness != 1 and self.arrival != GAMMA:
                raise ValueError(
                    f"open_loop.burstiness: {self.arrival} arrivals have none of their own to set: take an "
                    "arrival of gamma, or leave it away"
                )
            object.__setattr__(self, "users", 1)  # nobody's: requests come whether others have ended or not
        return self

    @property
    def open(self) -> bool:
        """Whether requests come by a schedule, whatever the server does."""
        return self.arrival in PROCESSES or self.arrival == TRACE

    @model_validator(mode="after")
    def _a_shape(self) -> Settings:
        shape = self.course
        if shape is None:
            return self
        if self.open:
            raise ValueError(
                "a shape says how many users there are, and in an open loop there are none: leave one away"
            )
        if self.prompt_lengths:
            raise ValueError("a shape and several prompt lengths don't go together: leave one of them away")
        if shape.kind == HAND:
            object.__setattr__(self, "blocks", 1)
            if self.residency == "exclusive":
                raise ValueError(
                    "by hand one engine is loaded, which has to be there: not with exclusive residency"
                )
        elif shape.kind == KNEE and self.residency == "parallel":
            raise ValueError("the knee is searched on one engine at a time: not with parallel residency")
        object.__setattr__(self, "users", shape.peak)
        return self

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
                if e.replicas:
                    raise ValueError(
                        f"exclusive residency starts one server at a time, and {e.name} has "
                        f"{len(e.urls)}: leave its further addresses away"
                    )
                if not e.start:
                    raise ValueError(
                        f"exclusive residency needs a start command for {e.name} in {CONFIG_FILE} "
                        f"([engines.{e.name}] start = '...')"
                    )
        return self

    @property
    def classes(self) -> tuple[TrafficClass, ...]:
        """The classes of a mix; none where all requests are of a kind."""
        return parse_mix(self.mix) if self.mix else ()

    @property
    def course(self) -> Shape | None:
        """The shape, read; None if the number of users does not vary. Raises ValueError."""
        return parse_shape(self.shape, self.users, self.level_s) if self.shape else None

    @property
    def warm_cache(self) -> bool:
        """Whether prefix caches are meant to help: prompts without salt, and conversations."""
        return self.salt == "off" or self.exchanges > 1

    @property
    def longest_request(self) -> tuple[int, int]:
        """Prompt and output tokens of the request that needs the longest context; of prompts of a file, the
        output alone."""
        if self.prompt_file:
            return 0, self.output_tokens
        if self.classes:
            longest = max(self.classes, key=lambda c: c.prompt_tokens + c.output_tokens)
            return longest.prompt_tokens, longest.output_tokens
        before = self.system_tokens + (self.exchanges - 1) * (self.prompt_tokens + self.output_tokens)
        return before + self.prompt_tokens, self.output_tokens

    def public_dict(self) -> dict[str, Any]:
        """The settings for the manifest: plain JSON types, and no header values (they may hold keys)."""
        data = self.model_dump(mode="json")
        for e in data["engines"]:
            e["headers"] = dict.fromkeys(e["headers"], "<set>")
        return data


def _lengths(given: Any) -> dict[str, Any]:
    """`prompt_tokens` and `prompt_lengths` of a list of lengths."""
    lengths = []
    for one in given:
        text = str(one).replace("_", "")
        if isinstance(one, bool) or not text.isascii() or not text.isdigit():
            raise ValueError(f"prompt_tokens: a length is a whole number of tokens, not {one!r}")
        if not 1 <= len(text) <= 8 or not 1 <= int(text) <= 10_000_000:
            raise ValueError(f"prompt_tokens: a length is from 1 to 10,000,000 tokens, not {one}")
        lengths.append(int(text))
    if not lengths or len(lengths) > MOST:
        raise ValueError(f"prompt_tokens: one length, or up to {MOST} with commas between")
    if len(set(lengths)) < len(lengths):
        raise ValueError("prompt_tokens: a length is there twice")
    lengths.sort()
    return {"prompt_tokens": lengths[-1], "prompt_lengths": tuple(lengths) if len(lengths) > 1 else ()}
