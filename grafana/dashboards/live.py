"""Live run: does the run that goes on do what it should?"""

from __future__ import annotations

from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards import shared
from grafana.dashboards.influxql import OK_OR_WARMUP, RUN, by_second, over_time, percentiles, table, target
from grafana.dashboards.model import dashboard as make
from grafana.dashboards.model import row

Json = dict[str, Any]

EMPTY = "Nothing arrives: is a run going on with INFLUXDB_URL set? `loadgen influx check` tells what is wrong"
PHASES = [("measure", "measured", p.GREEN), ("warmup", "warm-up", p.ORANGE), ("idle", "waits", p.GREY)]


def dashboard() -> Json:
    return make(
        "loadgen-live",
        "Live run",
        "Does the run that goes on do what it should? Provisional counts; the Comparison has the exact "
        "figures.",
        since="now-15m",
        refresh="5s",
        variables=[shared.scenario_picker(), shared.run_picker(source='"llm_window"')],
        annotations=shared.event_marks(),
        rows=[
            row("", _now(), [_phases()]),
            row("Engines", *_engines()),
            row("The generator itself", _generator()),
            row("Failures and events", shared.failure_panels(RUN), [_events()]),
        ],
    )


def _window(field: str) -> list[Json]:
    return [target(by_second(field, "engine"), "$tag_engine")]


def _now() -> list[Json]:
    def count(field: str) -> list[Json]:
        query = f'SELECT sum("{field}") FROM "llm_window" WHERE {RUN} GROUP BY "engine"'
        return [target(query, "$tag_engine")]

    lag = target(over_time('max("loop_lag_ms")', "llm_window"), "lag")
    return [
        p.stat(
            "Tokens per second",
            _window("tokens"),
            "Tokens that arrived, all users together; 0 while the other engine has its turn. "
            f"{shared.PROVISIONAL}",
            unit=p.TOKENS,
            w=8,
            graph=True,
            decimals=0,
            empty=EMPTY,
        ),
        p.stat(
            "Requests done",
            count("completions"),
            "Requests that ended well in the time range.",
            w=5,
            empty=EMPTY,
        ),
        p.stat(
            "Requests failed",
            count("failures"),
            "Failed requests in the time range; below stands why.",
            w=5,
            steps=[(None, p.GREEN), (1, p.RED)],
            empty=EMPTY,
        ),
        p.stat(
            "Generator's lag",
            [lag],
            "How late the generator's own timer was, at worst. A run in which that is 100 ms in one second "
            "of twenty is suspect.",
            unit="ms",
            w=6,
            graph=True,
            names=False,
            steps=[(None, p.GREEN), (50, p.ORANGE), (100, p.RED)],
            empty=EMPTY,
        ),
    ]


def _phases() -> Json:
    query = over_time('last("phase")', "llm_window", "engine", fill="none")
    return p.timeline(
        "Whose turn it is",
        [target(query, "$tag_engine")],
        "Green: requests are measured. Orange: warm-up. Grey: the engine waits, cools down, or the other "
        "one has its turn.",
        mappings=[p.value_map(PHASES)],
        h=5,
        empty=EMPTY,
    )


def _engines() -> list[list[Json]]:
    def tails(field: str) -> list[Json]:
        query = over_time(percentiles(field, 50, 95), "llm_request", "engine", where=OK_OR_WARMUP)
        return [target(query, "$tag_engine $col")]

    users = target(by_second("users", outer="max"), "users")
    colors = p.engine_colors()
    both = [*colors, p.dashed("p95$")]
    same = "Of requests that were through in each interval, warm-up among them."
    return [
        [
            p.timeseries(
                "Tokens per second",
                _window("tokens"),
                shared.PROVISIONAL,
                unit=p.TOKENS,
                overrides=colors,
                empty=EMPTY,
            ),
            p.timeseries(
                "Requests in flight, and users",
                [*_window("in_flight"), users],
                "Time average of requests in flight; on the engine whose turn it is they should be as many "
                "as the users.",
                overrides=colors,
                empty=EMPTY,
            ),
        ],
        [
            p.timeseries(
                "TTFT", tails("ttft_ms"), same, unit="ms", spans_ms=60_000, overrides=both, w=8, empty=EMPTY
            ),
            p.timeseries(
                "TPOT", tails("tpot_ms"), same, unit="ms", spans_ms=60_000, overrides=both, w=8, empty=EMPTY
            ),
            p.timeseries(
                "Requests done per second",
                _window("completions"),
                "Requests that ended well.",
                unit="reqps",
                overrides=colors,
                w=8,
                empty=EMPTY,
            ),
        ],
    ]


def _generator() -> list[Json]:
    def worst(field: str) -> list[Json]:
        return [target(over_time(f'max("{field}")', "llm_window", "worker"), "$tag_worker")]

    return [
        p.timeseries(
            "Timer lag",
            worst("loop_lag_ms"),
            "How late the generator's timer was in each second, at worst. A generator that is late sends "
            "late.",
            unit="ms",
            w=8,
            empty=EMPTY,
        ),
        p.timeseries(
            "Read lag",
            worst("read_lag_ms"),
            "The longest that received bytes waited to be read. Times of tokens are the kernel's, so a few "
            "milliseconds do no harm; beyond that segments merge.",
            unit="ms",
            w=8,
            spans_ms=60_000,
            empty=EMPTY,
        ),
        p.timeseries(
            "CPU of the generator's process",
            worst("cpu_percent"),
            "100 % is one core, which is all it can use: well below, or the generator is what was measured.",
            unit="percent",
            w=8,
            empty=EMPTY,
        ),
    ]


def _events() -> Json:
    query = table(
        f'SELECT "kind", "engine", "title", "text" FROM "run_event" WHERE {RUN} ORDER BY time DESC LIMIT 100'
    )
    return p.table(
        "Events",
        [query],
        "What happened in the run, the newest first: phases of turns, notes.",
        columns=[("Time", "when"), "kind", "engine", "title", "text"],
        empty=EMPTY,
        keep_time=True,
        overrides=[
            p.for_field("when", custom__width=180),
            p.for_field("kind", custom__width=140),
            p.for_field("engine", custom__width=110),
        ],
    )
