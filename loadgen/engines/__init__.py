"""What each server speaks: request bodies, the meaning of its events, and its control endpoints.

engine = make_engine(spec, settings)
info = preflight.check(engine, settings)
body = engine.request_body(prompt, engine.model, output_tokens=256)
chunk = engine.decode(event_data)
"""

from __future__ import annotations

from loadgen.config import EngineSpec, Settings

from .chunk import Chunk, Usage
from .errors import EngineError
from .info import CacheCounters, EngineInfo, Health
from .llamacpp import LlamaCppEngine
from .openai import OpenAIEngine
from .tally import UsageTally
from .vllm import VllmEngine

__all__ = [
    "CacheCounters",
    "Chunk",
    "EngineError",
    "EngineInfo",
    "Health",
    "LlamaCppEngine",
    "OpenAIEngine",
    "Usage",
    "UsageTally",
    "VllmEngine",
    "make_engine",
]

_KINDS: dict[str, type[OpenAIEngine]] = {e.kind: e for e in (OpenAIEngine, VllmEngine, LlamaCppEngine)}


def make_engine(spec: EngineSpec, settings: Settings) -> OpenAIEngine:
    """The engine of a spec's kind."""
    return _KINDS[spec.kind](spec, settings)
