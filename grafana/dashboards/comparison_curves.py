"""The Comparison's pictures: figures side by side, turns over each other, distributions, the run's course."""

from __future__ import annotations

from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards.influxql import BY_ENGINE, OK, RUN, over_time, percentiles, table, target

Json = dict[str, Any]

NO_REQUESTS = "No measured requests in this time range: widen it, then pick the run"
SINCE_TURN = " since the turn began"


def figures() -> list[Json]:
    def of(field: str) -> list[Json]:
        return [table(f'SELECT {percentiles(field, 50, 95, 99)} FROM "llm_request" WHERE {OK} {BY_ENGINE}')]

    throughput = table(f"""
        SELECT sum("tokens") / sum("measured_s") AS "tokens/s" FROM "llm_window"
        WHERE "measured_s" > 0 AND {RUN} {BY_ENGINE}
    """)
    decode = table(
        f'SELECT percentile("decode_tokens_per_s", 50) AS "p50" FROM "llm_request" WHERE {OK} {BY_ENGINE}'
    )
    same = "Nearest-rank percentiles over all measured requests that succeeded."
    return [
        p.bars("Throughput", [throughput], _THROUGHPUT, unit=p.TOKENS, w=4, empty=NO_REQUESTS),
        p.bars(
            "Decode speed of one request",
            [decode],
            "Median over requests of 1000 / TPOT: how fast text appears to one reader.",
            unit=p.TOKENS,
            w=4,
            empty=NO_REQUESTS,
        ),
        p.bars(
            "TTFT",
            of("ttft_ms"),
            f"How long a user stares at nothing. {same}",
            unit="ms",
            w=5,
            empty=NO_REQUESTS,
        ),
        p.bars(
            "TPOT",
            of("tpot_ms"),
            f"Time per output token after the first. {same}",
            unit="ms",
            w=5,
            empty=NO_REQUESTS,
        ),
        p.bars(
            "End to end", of("e2e_ms"), f"Until the last token. {same}", unit="ms", w=6, empty=NO_REQUESTS
        ),
    ]


_THROUGHPUT = (
    "Tokens that arrived in measured turns / the length of those turns, all users together. Exact when the "
    "run is over; while it goes on, from the generator's counts."
)


def aligned() -> list[Json]:
    def over(what: str) -> list[Json]:
        return [target(over_time(what, "llm_window_aligned", "engine"), "$tag_engine")]

    note = (
        "Every turn is moved to begin at the run's start, so engines that took turns lie over each other: "
        "read the axis as time since the turn began. Turns of one engine are averaged. Click the run in "
        "*This run* to zoom in."
    )
    empty = "Comes when the run is over. Too thin to see? Click the run in *This run* to zoom in"
    look: Json = {"w": 8, "h": 9, "empty": empty, "overrides": p.engine_colors()}
    tokens = 'sum("tokens") / sum("measured_s")'
    in_flight = 'sum("in_flight") / sum("measured_s")'
    return [
        p.timeseries(f"Throughput{SINCE_TURN}", over(tokens), note, unit=p.TOKENS, **look),
        p.timeseries(f"TTFT{SINCE_TURN}", over('mean("ttft_ms")'), note, unit="ms", spans_ms=60_000, **look),
        p.timeseries(f"In flight{SINCE_TURN}", over(in_flight), note, **look),
    ]


def distributions() -> list[Json]:
    def values(field: str) -> list[Json]:
        query = f'SELECT "{field}" FROM "llm_request" WHERE {OK} {BY_ENGINE} LIMIT 10000'
        return [target(query, "$tag_engine")]

    note = (
        "One sample a request that succeeded, warm-up left out; of each engine the first 10,000. Two humps "
        "are two different situations (a queue, a cache), and a median between them describes neither."
    )
    return [
        p.histogram("TTFT", values("ttft_ms"), note, unit="ms", empty=NO_REQUESTS),
        p.histogram("TPOT", values("tpot_ms"), note, unit="ms", empty=NO_REQUESTS),
        p.histogram("End to end", values("e2e_ms"), note, unit="ms", empty=NO_REQUESTS),
    ]


def course() -> list[Json]:
    measured = f'"measured_s" > 0 AND {RUN}'
    throughput = target(
        over_time('sum("tokens") / sum("measured_s")', "llm_window", "engine", where=measured), "$tag_engine"
    )
    ttft = target(f'SELECT "ttft_ms" FROM "llm_request" WHERE {OK} {BY_ENGINE} LIMIT 10000', "$tag_engine")
    colors = p.engine_colors()
    return [
        p.timeseries(
            "Throughput in measured seconds",
            [throughput],
            "The turns one after the other, with their marks. A slope over the whole run is the machine "
            "(heat, neighbours), not the engine: turns in ABBA order share it out evenly.",
            unit=p.TOKENS,
            overrides=colors,
        ),
        p.timeseries(
            "TTFT of each request",
            [ttft],
            "A dot a request, at the time at which it was through; the first 10,000 of each engine.",
            unit="ms",
            points=True,
            calcs=(),
            overrides=colors,
        ),
    ]
