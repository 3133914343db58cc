"""Pieces that several dashboards have: pickers, event marks, the tables of runs and of failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards.influxql import RUN, table, tag_values
from grafana.dashboards.model import annotation, variable
from loadgen.metrics import METRICS

Json = dict[str, Any]

# Figures of run_summary: the name in the database, what a table shows.
METRIC_NAMES = {
    "throughput_tokens_per_s": "Throughput, tokens/s",
    "requests_per_s": "Requests/s",
    "concurrency": "Requests in flight",
    "failures": "Failed requests",
    **{m.name: f"{m.title}, {m.unit}" if m.unit not in m.title else m.title for m in METRICS},
}
# What decides which engine is the better one for a use; the rest is there for who wants to know why.
DECISIVE = ("throughput_tokens_per_s", "ttft_ms", "tpot_ms", "decode_tokens_per_s", "e2e_ms")

RUN_HELP = (
    "The newest first. Only runs inside the time range at the top right are listed: widen it if yours is "
    "missing."
)
SCENARIO_HELP = "Limits the runs to one workload."
PROVISIONAL = (
    "While a run goes on these are the generator's own counts of events; when it is over exact figures "
    "replace them."
)


def scenario_picker() -> Json:
    return variable(
        "scenario",
        "Scenario",
        tag_values('"llm_request"', "scenario"),
        everything=True,
        description=SCENARIO_HELP,
    )


def run_picker(*, multi: bool = False, source: str = '"llm_request"', scenario: bool = True) -> Json:
    where = '"scenario" =~ /^$scenario$/' if scenario else ""
    query = tag_values(source, "run", where)
    return variable("run", "Run", query, multi=multi, newest_first=True, description=RUN_HELP)


def event_marks() -> list[Json]:
    """Turns, and what lies between them, as regions; notes as lines. A phase is drawn when it is over."""
    phase = 'SELECT "title", "kind" AS "text", "tags", "end_ms" FROM "run_event"'
    note = 'SELECT "title", "text", "tags" FROM "run_event"'
    return [
        annotation("Turns", "blue", f"{phase} WHERE \"kind\" = 'turn' AND {RUN}", end="end_ms"),
        annotation(
            "Warm-ups, cool-downs",
            "orange",
            f'{phase} WHERE "kind" =~ /^(warmup|cooldown)$/ AND {RUN}',
            end="end_ms",
            shown=False,
        ),
        annotation("Notes", "purple", f"{note} WHERE \"kind\" = 'note' AND {RUN}"),
    ]


def runs_table(title: str, where: str, about: str, *, h: int = 6) -> Json:
    """Runs with a link that sets picker and time range to exactly that run, two seconds before and after."""
    times = table(f"""
        SELECT min("start_ms") - 2000 AS "start", max("start_ms") + 2000 AS "end"
        FROM "run_event" WHERE {where} GROUP BY "run", "scenario"
    """)
    requests = table(f"""
        SELECT sum("n") AS "requests", sum("value") AS "failures"
        FROM "run_summary" WHERE "metric" = 'failures' AND {where} GROUP BY "run"
    """)
    verdicts = table(f"""
        SELECT last("validity") AS "validity", max("simulated") AS "simulated"
        FROM "run_summary" WHERE {where} GROUP BY "run"
    """)
    links = [
        {
            "title": f"{name}: this run, at its own time",
            "url": (
                f"/d/{uid}?var-scenario=${{__data.fields.scenario}}&var-run=${{__data.fields.run}}"
                "&from=${__data.fields.start.numeric}&to=${__data.fields.end.numeric}"
            ),
        }
        for name, uid in (("Comparison", "loadgen-comparison"), ("GPU and engine", "loadgen-gpu"))
    ]
    return p.table(
        title,
        [times, requests, verdicts],
        about,
        columns=["run", "scenario", "validity", "simulated", "start", "end", "requests", "failures"],
        h=h,
        before=[{"id": "joinByField", "options": {"byField": "run", "mode": "outer"}}],
        empty="No runs here: choose a wider time range (top right), or deliver one with `loadgen ship RUN`",
        sort=("start", True),
        overrides=[
            p.for_field("run", links=links, custom__width=330),
            p.for_field("start", unit="dateTimeAsSystem", custom__width=170),
            p.for_field("end", unit="dateTimeAsSystem", custom__width=170),
            simulated_column(),
            validity_column(),
            p.for_field("failures", thresholds=p.thresholds([(None, "text"), (1, p.RED)]), **COLORED),
        ],
    )


def failure_panels(where: str) -> list[Json]:
    """How many of which kind, and what servers said."""
    kinds = table(
        f'SELECT count("failed") AS "requests" FROM "llm_request" '
        f'WHERE "outcome" = \'failed\' AND {where} GROUP BY "engine", "error", "phase"'
    )
    texts = table(
        f'SELECT "engine", "error", "status", "error_text" FROM "llm_request" '
        f"WHERE \"outcome\" = 'failed' AND {where} ORDER BY time DESC LIMIT 100"
    )
    return [
        p.table(
            "Failures by kind",
            [kinds],
            "Failed requests by engine and kind of error. There are no retries: a failure is a result. They "
            "never enter a percentile.",
            columns=["engine", "error", "phase", "requests"],
            w=8,
            empty="No failed requests",
            sort=("requests", True),
        ),
        p.table(
            "What went wrong",
            [texts],
            "The last 100 failed requests with what the server or the connection said.",
            columns=[("Time", "when"), "engine", "error", "status", ("error_text", "what it said")],
            w=16,
            empty="No failed requests",
            keep_time=True,
            overrides=[
                p.for_field("when", custom__width=180),
                p.for_field("engine", custom__width=110),
                p.for_field("error", custom__width=170),
                p.for_field("status", custom__width=80, unit="none"),
            ],
        ),
    ]


COLORED: Json = {"custom__cellOptions": {"type": "color-text"}}


def validity_column() -> Json:
    mapping = p.value_map((name, name, color) for name, color in p.VALIDITY)
    return p.for_field(
        "validity",
        mappings=[mapping],
        custom__width=100,
        custom__cellOptions={"type": "color-background", "mode": "basic"},
    )


def simulated_column() -> Json:
    mapping = p.value_map([("0", "no", None), ("1", "yes", p.ORANGE)])
    return p.for_field("simulated", mappings=[mapping], custom__width=95, **COLORED)


def metric_column() -> Json:
    mapping = p.value_map((name, shown, None) for name, shown in METRIC_NAMES.items())
    return p.for_field("metric", mappings=[mapping], custom__width=210)


def better_column() -> Json:
    undecided = p.pattern_map("^(no difference|not decidable)$", "$1", p.GREY)
    return p.for_field("better", mappings=[undecided, p.pattern_map("^(.+)$", "$1", p.GREEN)], **COLORED)


def either(names: Sequence[str]) -> str:
    """A regular expression for one of these."""
    return f"/^({'|'.join(names)})$/"
