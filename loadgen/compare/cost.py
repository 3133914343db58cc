"""What an engine's speed costs: tokens per second and GPU, and the price of a million tokens. Pure.

    tokens_per_s_per_gpu      = throughput / GPUs
    per_million_output_tokens = price of a GPU hour x GPUs / (throughput x 3600 s) x 1,000,000

of output tokens, at the load that was measured, with the GPUs paid for as long as they are busy with it. The
same engine under another load has another cost: one user alone on a card is the dearest way to use it.
"""

from __future__ import annotations

from typing import Any

PER = 1_000_000
HOUR_S = 3600


def engine_cost(
    throughput: float | None, gpus: int | None, source: str, gpu_hour: float | None = None
) -> dict[str, Any]:
    """The figures by name; empty without a throughput (tokens/s) and a number of GPUs. `source` says where
    the number is from, `gpu_hour` is the price of one GPU for an hour, in any currency."""
    if not throughput or not gpus:
        return {}
    out: dict[str, Any] = {
        "gpus": gpus,
        "gpus_source": source,
        "tokens_per_s_per_gpu": throughput / gpus,
    }
    if gpu_hour is not None:
        out["gpu_hour"] = gpu_hour
        out["per_million_output_tokens"] = gpu_hour * gpus / (throughput * HOUR_S) * PER
    return out


def cost_ratio(
    gpus: int, baseline_gpus: int, ratio: float | None, low: float | None, high: float | None
) -> dict[str, float]:
    """An engine's cost per token over the baseline's: the inverse of the throughput's ratio and interval,
    times the ratio of their GPUs. The price drops out."""
    times = gpus / baseline_gpus
    out = {}
    for name, value in (("ratio", ratio), ("low", high), ("high", low)):
        if value:
            out[name] = times / value
    return out
