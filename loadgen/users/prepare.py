"""Before any load is sent: which engines are there, and can they do the run?"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from loadgen.config import ConfigError, EngineSpec, Settings
from loadgen.engines import EngineError, EngineInfo, OpenAIEngine, make_engine, preflight
from loadgen.users.lane import Lane
from loadgen.users.supply import PromptSupply

log = logging.getLogger("loadgen")

MakeEngine = Callable[[EngineSpec, Settings], OpenAIEngine]

NOBODY = (
    "no engine answers at {urls}: point loadgen at a server with --engine NAME=KIND:URL, in loadgen.toml or "
    "with VLLM_URL and LLAMACPP_URL, or start simulated ones with `loadgen sim`"
)

NO_RATE = (
    "an open loop needs the rate at which requests come, --rate 8 for 8 a second, or a trace to replay, "
    "--trace FILE"
)


def prepare(settings: Settings, make: MakeEngine = make_engine) -> tuple[Settings, list[Lane], PromptSupply]:
    """The engines that take part, fit for the run, and a supply of prompts that can be made for them.

    The settings come back without the default endpoints that did not answer. With exclusive residency no
    engine runs yet, so each is checked when it has been started. Raises ConfigError, EngineError or
    PromptError with one clear sentence.
    """
    if settings.open and settings.open_loop.rate is None and settings.open_loop.trace is None:
        raise ConfigError(NO_RATE)
    supply = PromptSupply(settings, run_salt=os.urandom(8).hex())
    lanes: list[Lane] = []
    for spec in settings.engines:
        spec.api_key()  # a key that is not set: ConfigError
        lane = Lane(make(spec, settings))
        if settings.residency == "exclusive":
            lanes.append(lane)
            continue
        try:
            lane.info = preflight.check(lane.engine, settings)
        except EngineError as e:
            if spec.named:
                raise
            log.info("%s; nobody named this default endpoint, so it is left out", e)
            continue
        log.info("%s", describe(lane.info))
        lanes.append(lane)
    if not lanes:
        raise ConfigError(NOBODY.format(urls=" or ".join(e.url for e in settings.engines)))
    if settings.residency != "exclusive":
        for lane in lanes:
            supply.check_trace(lane)
        supply.choose(lanes)
        for lane in lanes:
            supply.check_fit(lane)
    kept = tuple(lane.engine.spec for lane in lanes)
    return settings.model_copy(update={"engines": kept}), lanes, supply


def describe(info: EngineInfo) -> str:
    """`engine vllm: vLLM 0.32.0 at http://..., model smollm2, context 4096 (simulated)`."""
    server = f"{info.server} {info.version}" if info.version else info.server
    parts = [f"engine {info.name}: {server} at {info.url}", f"model {info.model}"]
    if info.context:
        parts.append(f"context {info.context}")
    if info.slots:
        parts.append(f"{info.slots} slots")
    text = ", ".join(parts) + (" (simulated)" if info.simulated else "")
    return "; ".join([text, *info.notes])
