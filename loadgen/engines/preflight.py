"""preflight.check: is this engine fit for this run? Asked before any load is sent."""

from __future__ import annotations

from pathlib import PurePosixPath

from loadgen.config import Settings

from .errors import EngineError
from .info import EngineInfo
from .openai import OpenAIEngine


def check(engine: OpenAIEngine, settings: Settings) -> EngineInfo:
    """What the engine is, if it can do the run.

    EngineError, one sentence with what to do next, when it does not answer, still loads its model, is of
    another kind, serves another model than asked, or has a context too short for prompt and output.
    """
    info = _identified(engine, settings)
    if engine.spec.replicas:
        _check_replicas(info, engine, settings)
    if info.slots is not None and settings.users > info.slots and settings.residency != "parallel":
        info.notes.append(
            f"{settings.users} users share {info.slots} slots: the others wait in the server's queue, "
            "and TTFT holds that wait (llama-server -np)"
        )
    note_shared_cache(info, settings)
    return info


def _identified(engine: OpenAIEngine, settings: Settings) -> EngineInfo:
    health = engine.health()
    if not health.ready:
        raise EngineError(health.text, health.reason)
    info = engine.identify()
    check_model(info, engine)
    check_context(info, settings)
    return info


def _check_replicas(info: EngineInfo, engine: OpenAIEngine, settings: Settings) -> None:
    """Every further address has to serve the same; `info` then speaks of all of them."""
    slots = info.slots
    for k in range(1, len(engine.spec.urls)):
        one = engine.at(k)
        try:
            other = _identified(one, settings)
        finally:
            one.close()
        if (other.model, other.server) != (info.model, info.server):
            raise EngineError(
                f"engine {info.name}: its addresses serve different things, {info.url} {info.model} with "
                f"{info.server} and {other.url} {other.model} with {other.server}: make them two engines",
                "model",
            )
        if other.version != info.version:
            info.notes.append(f"{other.url} has version {other.version}, {info.url} has {info.version}")
        slots = slots + other.slots if slots is not None and other.slots is not None else None
        info.simulated = info.simulated or other.simulated
    info.slots = slots
    info.facts["urls"] = list(engine.spec.urls)
    info.notes.append(
        f"requests are spread over {len(engine.spec.urls)} servers in turn; their queues are not watched"
    )


def check_model(info: EngineInfo, engine: OpenAIEngine) -> None:
    """Raises EngineError if the settings name a model that the server does not have, or must and do not."""
    asked = engine.spec.model
    table = f"[engines.{info.name}] of loadgen.toml"
    if asked is None:
        if info.model is None:
            raise EngineError(
                f"engine {info.name}: {info.url} serves no model: load one, or name it as model in {table}",
                "model",
            )
        if engine.kind == "openai" and len(info.models) > 1:
            raise EngineError(
                f"engine {info.name}: {info.url} serves {_listed(info.models)}: "
                f"say which one with model = '...' in {table}",
                "model",
            )
        return
    # llama.cpp answers whatever model is named, so a wrong one shows only here.
    known = {*info.models, *_file_names(info)}
    if info.models and asked not in known:
        raise EngineError(
            f"engine {info.name}: {info.url} serves {_listed(info.models)}, not {asked}: "
            f"change model in {table}, or start the server with that model",
            "model",
        )


def check_context(info: EngineInfo, settings: Settings) -> None:
    """Raises EngineError if prompt and output together are longer than one request may be."""
    if info.context is None:
        return
    prompt, output = settings.longest_request
    need = prompt + output
    if need <= info.context:
        return
    asked = f"{prompt} prompt and {output} output tokens" if prompt else f"{need} output tokens"
    lower = "--prompt-tokens or --output-tokens"
    if settings.mix:
        lower = "the lengths in --mix"
    elif settings.exchanges > 1:
        asked += f" at the end of {settings.exchanges} exchanges"
        lower = "--exchanges, --system-tokens, --prompt-tokens or --output-tokens"
    if info.kind == "llamacpp":
        slots = info.slots or 1
        cure = f"start it with -c {need * slots} -np {slots}" if slots > 1 else f"start it with -c {need}"
        where = "in each slot" if slots > 1 else "as context"
    else:
        cure = f"start it with --max-model-len {need}" if info.kind == "vllm" else "take a longer one"
        where = "as context"
    raise EngineError(
        f"engine {info.name}: {info.url} has {info.context} tokens {where}, too few for {asked}: {cure}, "
        f"or lower {lower}",
        "context",
    )


def note_shared_cache(info: EngineInfo, settings: Settings) -> None:
    """Without -np, llama-server's slots share one KV cache of the length that it tells for each of them.

    It does not say which it is, and when a shared cache is full all running requests fail: worth a sentence.
    """
    if info.kind != "llamacpp" or info.context is None or (info.slots or 1) == 1 or settings.prompt_file:
        return
    at_once = min(settings.users, info.slots or 1)
    need = at_once * sum(settings.longest_request)
    if need > info.context:
        info.notes.append(
            f"{at_once} requests at once need {need} tokens: started without -np, the server lets its slots "
            f"share {info.context}, and running requests will fail; with -np each slot has its own"
        )


def _file_names(info: EngineInfo) -> set[str]:
    path = info.facts.get("model_path") or info.facts.get("model_root")
    if not path:
        return set()
    name = PurePosixPath(str(path).replace("\\", "/")).name
    return {str(path), name, name.removesuffix(".gguf"), str(info.facts.get("model_alias", name))}


def _listed(models: tuple[str, ...]) -> str:
    shown = ", ".join(models[:5])
    return shown + (f" and {len(models) - 5} more" if len(models) > 5 else "")
