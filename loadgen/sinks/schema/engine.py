"""engine, engine_memory: what an engine says of itself, under names that all engines share."""

from __future__ import annotations

from loadgen.sinks.schema.model import ENGINE, RUN, SCENARIO, Field, Measurement

ENGINE_METRICS = Measurement(
    name="engine",
    meaning=(
        "One scrape of an engine's /metrics. What an engine does not report is absent. `*_total` are "
        "counters: they begin at 0 when the engine is started."
    ),
    source="engine.jsonl",
    time="when it was scraped",
    tags=(RUN, SCENARIO, ENGINE),
    fields=(
        Field("running", "requests being worked on", "requests"),
        Field("waiting", "requests in the engine's queue", "requests"),
        Field("kv_used_share", "share of the KV cache in use, 0 to 1"),
        Field("preemptions_total", "requests thrown out of the KV cache", "requests"),
        Field("cache_queries_total", "prompt tokens looked up in the prefix cache", "tokens"),
        Field("cache_hits_total", "prompt tokens found there", "tokens"),
        Field("prompt_tokens_total", "prompt tokens processed", "tokens"),
        Field("generation_tokens_total", "tokens generated", "tokens"),
        Field("draft_tokens_total", "tokens proposed by speculative decoding", "tokens"),
        Field("accepted_tokens_total", "proposed tokens that were taken", "tokens"),
        Field("prompt_tokens_per_s", "prompt tokens since the last scrape, per second", "tokens/s"),
        Field("generation_tokens_per_s", "tokens generated since the last scrape, per second", "tokens/s"),
        Field("scrape_ms", "what the scrape took", "ms"),
    ),
)

ENGINE_MEMORY = Measurement(
    name="engine_memory",
    meaning="Where an engine's memory goes, over the whole run; all its GPUs together. What nobody tells is "
    "absent: weights and KV cache stand in the engines' logs.",
    source="derived.jsonl",
    time="the run's start",
    tags=(RUN, SCENARIO, ENGINE),
    fields=(
        Field("reserved_bytes", "the most that its processes held on GPUs", "bytes"),
        Field("weights_bytes", "the model", "bytes"),
        Field("kv_capacity_bytes", "the KV cache that it made room for", "bytes"),
        Field("kv_used_bytes", "the most of it that the measured requests used", "bytes"),
        Field("least_needed_bytes", "weights, KV used and working memory: enough for this load", "bytes"),
    ),
)
