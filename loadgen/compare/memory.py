"""An engine's memory as five numbers, each with where it is from. Pure.

    reserved      the most that its processes held on GPUs; vLLM takes its share, whatever it needs
    weights       the model
    kv_capacity   the KV cache that it made room for
    kv_used       the most of it that the measured requests used
    least_needed  weights + kv_used + working memory (activations, graphs, compute buffers, the driver's own):
                  what would have been enough for this workload. Engines are ranked on it.

Working memory is reserved - weights - kv_capacity, or what the engine's log says of it. Nothing is guessed: a
number that nobody tells is absent, and `missing` says who could.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.compare.enginelog import LogMemory

NUMBERS = ("reserved", "weights", "kv_capacity", "kv_used", "least_needed")
TITLES = {
    "reserved": "reserved",
    "weights": "weights",
    "kv_capacity": "KV capacity",
    "kv_used": "KV used at most",
    "least_needed": "least needed",
}
LOG = "its log"
NVML = "NVML: peak of its processes"
MODEL_FILE = "llama.cpp: tensors of the model file"
SERVER = "what the server says"
GAUGE = "its own gauge, once a second"
RECORDS = "requests in flight at once, at full length"
NO_LOG = LogMemory()


@dataclass(frozen=True, slots=True)
class MemorySources:
    """What is known of an engine: `info` is its EngineInfo dict, `reserved` bytes, `share` the most of the KV
    cache that its gauge showed (0 to 1), `tokens` the most tokens in flight by the records."""

    info: Mapping[str, Any]
    reserved: int | None = None
    log: LogMemory = NO_LOG
    share: float | None = None
    tokens: int | None = None


def engine_memory(known: MemorySources) -> dict[str, Any]:
    """{"reserved": {"bytes", "source"}, "kv_capacity": {"bytes", "tokens", "source"}, ..., "missing": [...]}.

    What is not known is absent. Empty if nothing at all is known of its memory.
    """
    out: dict[str, Any] = {}
    if known.reserved:
        out["reserved"] = {"bytes": known.reserved, "source": NVML}
    if weights := _weights(known):
        out["weights"] = weights
    if capacity := _capacity(known):
        out["kv_capacity"] = capacity
    if used := _used(known, capacity):
        out["kv_used"] = used
    if least := _least(known, out):
        out["least_needed"] = least
    if not out.keys() - {"kv_used"}:
        return {}
    out["missing"] = _missing(out)
    return out


def _weights(known: MemorySources) -> dict[str, Any] | None:
    if known.log.weights:
        return {"bytes": known.log.weights, "source": LOG}
    size = (known.info.get("facts") or {}).get("size")
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return {"bytes": size, "source": MODEL_FILE}
    return None


def _capacity(known: MemorySources) -> dict[str, Any]:
    out: dict[str, Any] = {}
    sources = []
    if known.log.kv_capacity:
        out["bytes"] = known.log.kv_capacity
        sources.append(LOG)
    total = known.info.get("total_context")
    if isinstance(total, int) and total > 0:
        out["tokens"] = total
        sources.append(SERVER)
    elif known.log.kv_tokens:
        out["tokens"] = known.log.kv_tokens
        sources = [LOG]
    return {**out, "source": ", ".join(sources)} if out else {}


def _used(known: MemorySources, capacity: Mapping[str, Any]) -> dict[str, Any]:
    share, tokens, source = known.share, known.tokens, GAUGE
    of = capacity.get("tokens")
    if share is not None:
        tokens = round(share * of) if of else None
    else:
        source = RECORDS
        share = min(tokens / of, 1.0) if tokens is not None and of else None
    out: dict[str, Any] = {}
    if share is not None:
        out["share"] = share
    if tokens is not None:
        out["tokens"] = tokens
    if share is not None and "bytes" in capacity:
        out["bytes"] = round(share * capacity["bytes"])
    return {**out, "source": source} if out else {}


def _least(known: MemorySources, out: Mapping[str, Any]) -> dict[str, Any] | None:
    weights, capacity, used = (out.get(k, {}).get("bytes") for k in ("weights", "kv_capacity", "kv_used"))
    if weights is None or used is None:
        return None
    if known.reserved and capacity is not None and known.reserved >= weights + capacity:
        working, source = known.reserved - weights - capacity, "reserved - KV capacity + KV used"
    elif known.log.working is not None:
        working, source = known.log.working, "weights + KV used + working memory by its log"
    else:
        return None
    return {"bytes": weights + used + working, "working_bytes": working, "source": source}


def _missing(out: Mapping[str, Any]) -> list[str]:
    """A sentence for each number that is not known, with who could tell it."""
    log = "the engine's start-up log tells (--engine-log NAME=FILE)"
    sentences = {
        "reserved": "reserved: NVML tells, where the engine's processes can be told apart",
        "weights": f"weights: {log}",
        "kv_capacity": f"KV capacity in bytes: {log}",
        "kv_used": "KV used in bytes: needs the KV capacity",
        "least_needed": "least needed: needs the others",
    }
    return [text for name, text in sentences.items() if "bytes" not in out.get(name, {})]
