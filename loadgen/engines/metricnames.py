"""What the engines' own metrics are called, under one name for all of them. Pure.

| field | meaning |
|---|---|
| running, waiting | requests being computed, requests in the queue |
| kv_used_share | how much of the KV cache is in use, 0 to 1; the mean over engine processes |
| preemptions_total | requests put back because the KV cache was full |
| cache_queries_total, cache_hits_total | prompt tokens looked up in the prefix cache, and found there |
| prompt_tokens_total | prompt tokens, those from the cache included where the server counts them |
| generation_tokens_total | generated tokens |
| draft_tokens_total, accepted_tokens_total | speculative decoding: tokens proposed, and of them accepted |
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .metricstext import label, samples

_Alternatives = tuple[tuple[str, ...], ...]

# Each alternative is a sum of metrics; the first one of which all are there counts. Newer names come first,
# since vLLM shows old and new side by side for some versions.
FIELDS: Mapping[str, _Alternatives] = {
    "running": (("vllm:num_requests_running",), ("llamacpp:requests_processing",)),
    "waiting": (("vllm:num_requests_waiting",), ("llamacpp:requests_deferred",)),
    "kv_used_share": (
        ("vllm:kv_cache_usage_perc",),
        ("vllm:gpu_cache_usage_perc",),
        ("llamacpp:kv_cache_usage_ratio",),
    ),
    "preemptions_total": (("vllm:num_preemptions_total",),),
    "cache_queries_total": (
        ("vllm:prefix_cache_queries_total",),
        ("vllm:gpu_prefix_cache_queries_total",),
        # Its prompt_tokens_total holds only what was computed: with the cached ones it is all that was asked.
        ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
    ),
    "cache_hits_total": (
        ("vllm:prefix_cache_hits_total",),
        ("vllm:gpu_prefix_cache_hits_total",),
        ("llamacpp:prompt_tokens_cached_total",),
    ),
    "prompt_tokens_total": (
        ("vllm:prompt_tokens_total",),
        ("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"),
        ("llamacpp:prompt_tokens_total",),
    ),
    "generation_tokens_total": (("vllm:generation_tokens_total",), ("llamacpp:tokens_predicted_total",)),
    "draft_tokens_total": (
        ("vllm:spec_decode_num_draft_tokens_total",),
        ("llamacpp:spec_decode_num_draft_tokens_total",),
    ),
    "accepted_tokens_total": (
        ("vllm:spec_decode_num_accepted_tokens_total",),
        ("llamacpp:spec_decode_num_accepted_tokens_total",),
    ),
}
_MEANS = frozenset({"kv_used_share"})
_WANTED = frozenset(name for sums in FIELDS.values() for names in sums for name in names)


def engine_fields(text: str, model: str | None = None) -> dict[str, float]:
    """The fields that a /metrics text has; a field whose metrics are missing, or no numbers, is absent.

    A server with several engine processes (data parallel) writes a line for each: they are added up, shares
    averaged. Where lines name several models and `model` is one of them, only its lines count.
    """
    lines: dict[str, list[tuple[str | None, float]]] = {}
    for name, written, value in samples(text):
        if name in _WANTED and math.isfinite(value):
            lines.setdefault(name, []).append((label(written, "model_name"), value))
    models = {m for found in lines.values() for m, _ in found}
    if model is not None and model in models:
        lines = {name: [(m, v) for m, v in found if m in (model, None)] for name, found in lines.items()}
    fields: dict[str, float] = {}
    for field, alternatives in FIELDS.items():
        for names in alternatives:
            parts = [[v for _, v in lines.get(name, ())] for name in names]
            if all(parts):
                total = math.fsum(v for values in parts for v in values)
                fields[field] = total / len(parts[0]) if field in _MEANS else total
                break
    return fields
