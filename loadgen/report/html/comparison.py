"""The comparison that a run's report shows: the JSON of `loadgen compare`, and which of its rows say most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Comparison = Mapping[str, Any]
Row = Mapping[str, Any]

# What is compared first, by whether one user waits for each token or many share the server.
ONE_USER = ("ttft_ms", "decode_tokens_per_s", "e2e_ms", "joules_per_output_token")
MANY_USERS = ("throughput_tokens_per_s", "ttft_ms", "tpot_ms", "e2e_ms", "joules_per_output_token")


def main_rows(comparison: Comparison, users: int | None, *, brief: bool = False) -> list[Row]:
    """The rows for a first look, engine by engine: means, and what a turn has one value of. `brief`: the
    two or three that say most, for one scenario of several."""
    wanted: Sequence[str] = ONE_USER if users == 1 else MANY_USERS
    if brief:
        wanted = wanted[: 2 if users == 1 else 3]
    by_key = {
        (r["engine"], r["figure"]): r
        for r in comparison["rows"]
        if r["statistic"] in ("mean", "value") and r["ratio"] is not None
    }
    others: Sequence[str] = [e for e in comparison["engines"] if e != comparison["baseline"]]
    return [by_key[e, f] for e in others for f in wanted if (e, f) in by_key]


def gain(row: Row) -> tuple[float, float | None, float | None]:
    """(factor, low, high), turned so that above 1 the engine is better than the baseline in every figure."""
    ratio, low, high = row["ratio"], row["low"], row["high"]
    if row["higher_is_better"]:
        return ratio, low, high
    return 1 / ratio, None if high is None else 1 / high, None if low is None else 1 / low
