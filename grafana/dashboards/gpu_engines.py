"""The engines' part of the GPU dashboard: queue, KV cache, tokens as the servers count them."""

from __future__ import annotations

from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards.influxql import OK_OR_WARMUP, over_time, target

Json = dict[str, Any]

NO_ENGINE = "No engine counters: vLLM has /metrics by itself, llama-server needs --metrics"


def engine_lines() -> list[list[Json]]:
    return [
        [_queue(), _kv()],
        [_tokens(), _prefix_cache(), _preemptions()],
        [_speculation(), _scrapes()],
    ]


def _engine(
    title: str, select: str, about: str, *, alias: str = "$tag_engine", dashed: str = "", **look: Any
) -> Json:
    query = over_time(select, "engine", "engine")
    look = {"w": 8, "empty": NO_ENGINE, "spans_ms": 10_000, **look}
    overrides = [*p.engine_colors(), *([p.dashed(dashed)] if dashed else [])]
    return p.timeseries(title, [target(query, alias)], about, overrides=overrides, **look)


def _rate(field: str) -> str:
    return f'non_negative_derivative(last("{field}"), 1s)'


def _queue() -> Json:
    gauges = over_time('mean("running") AS "running", mean("waiting") AS "waiting"', "engine", "engine")
    ttft = over_time('percentile("ttft_ms", 50)', "llm_request", "engine", where=OK_OR_WARMUP)
    return p.timeseries(
        "Queue of the engines, and TTFT",
        [target(gauges, "$tag_engine $col"), target(ttft, "$tag_engine TTFT p50")],
        "Requests that run and that wait in the server (left), and what users saw (right, dots). TTFT that "
        "rises with the queue is load; TTFT that rises without it is prefill.",
        w=16,
        spans_ms=10_000,
        empty=NO_ENGINE,
        overrides=[
            *p.engine_colors(),
            p.dashed("waiting$"),
            p.right_axis("TTFT p50$", "ms", custom__drawStyle="points"),
        ],
    )


def _kv() -> Json:
    return _engine(
        "KV cache in use",
        'max("kv_used_share")',
        "A full cache makes requests wait, or throws them out.",
        unit="percentunit",
        high=1,
    )


def _tokens() -> Json:
    return _engine(
        "Tokens by the engines' own counters",
        'mean("generation_tokens_per_s") AS "generated", mean("prompt_tokens_per_s") AS "prompt"',
        "What the server says it did; it should agree with what arrived at the client.",
        alias="$tag_engine $col",
        dashed="prompt$",
        unit=p.TOKENS,
    )


def _prefix_cache() -> Json:
    return _engine(
        "Prefix cache: tokens asked for and found",
        f'{_rate("cache_queries_total")} AS "asked", {_rate("cache_hits_total")} AS "found"',
        "In a comparison prompts are salted: what is found should be the template's own prefix and no more.",
        alias="$tag_engine $col",
        dashed="found$",
        unit=p.TOKENS,
    )


def _preemptions() -> Json:
    return _engine(
        "Preemptions per second",
        _rate("preemptions_total"),
        "Requests thrown out of a full KV cache to be done again: above 0 the engine is overloaded.",
    )


def _speculation() -> Json:
    return _engine(
        "Speculative decoding: drafted and accepted",
        f'{_rate("draft_tokens_total")} AS "drafted", {_rate("accepted_tokens_total")} AS "accepted"',
        "Accepted / drafted is what speculation brings.",
        alias="$tag_engine $col",
        dashed="accepted$",
        unit=p.TOKENS,
        w=12,
        empty="No speculative decoding, or the engine does not count it",
    )


def _scrapes() -> Json:
    return _engine(
        "What a scrape took", 'max("scrape_ms")', "A slow /metrics is a busy server.", unit="ms", w=12
    )
