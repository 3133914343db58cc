"""Comparison: which engine is the better one, for what, and may the run be believed?"""

from __future__ import annotations

from typing import Any

from grafana.dashboards import comparison_curves as curves
from grafana.dashboards import panels as p
from grafana.dashboards import shared
from grafana.dashboards.influxql import BY_ENGINE, MEASURED, RUN, table, target
from grafana.dashboards.model import dashboard as make
from grafana.dashboards.model import row

Json = dict[str, Any]

HOW = """\
**Pick a run** above (the newest of the time range is shown). **Click the run** in *This run* to set the time
range to exactly its own: the curves need that, the figures don't. Believe what is green in *May it be
believed?*
"""
NOT_YET = "Not judged yet: the run goes on, or was not delivered (`loadgen ship RUN`)"
NO_SUMMARY = "No verdicts yet: they come when the run is over and delivered (`loadgen ship RUN`)"
COMPARED = ("against", "ratio", "from", "to", "blocks", "better")
VALIDITY_LEVELS = p.value_map((str(i), name, color) for i, (name, color) in enumerate(p.VALIDITY))


def dashboard() -> Json:
    board = make(
        "loadgen-comparison",
        "Comparison",
        "Which engine is the better one, for what, and may the run be believed?",
        since="now-24h",
        variables=[shared.scenario_picker(), shared.run_picker(multi=True)],
        annotations=shared.event_marks(),
        rows=[
            row("", [p.text(HOW, h=3)], _believe(), [shared.runs_table("This run", RUN, _THIS_RUN, h=4)]),
            row("Which engine?", [_uses()], [_verdicts(shared.DECISIVE)]),
            row("Side by side", curves.figures()),
            row("Turns laid over each other", curves.aligned()),
            row("How it is spread", curves.distributions()),
            row("In the order it happened", curves.course()),
            row(
                "Failures",
                [_failed_share(), *shared.failure_panels(RUN)[:1]],
                [shared.failure_panels(RUN)[1]],
            ),
            row("All figures", [_verdicts()], collapsed=True),
        ],
    )
    # These panels' time is not that of the run: marks of its events would stand anywhere.
    moved = [panel["id"] for panel in board["panels"] if panel["title"].endswith(curves.SINCE_TURN)]
    for marks in board["annotations"]["list"]:
        if not marks.get("builtIn"):
            marks["filter"] = {"exclude": True, "ids": moved}
    return board


_THIS_RUN = (
    "What the pickers chose. A click on its name sets the time range to the run's own. With several runs "
    "chosen, everything below pools them: that is how two runs made apart, an engine each, come side by "
    "side."
)


def _believe() -> list[Json]:
    level = target(f'SELECT max("validity_level") FROM "run_summary" WHERE {RUN} GROUP BY "run"', "$tag_run")
    reasons = table(f"""
        SELECT last("validity") AS "validity", last("validity_reasons") AS "reasons",
            last("simulated") AS "simulated"
        FROM "run_summary" WHERE {RUN} GROUP BY "run"
    """)
    return [
        p.stat(
            "May it be believed?",
            [level],
            "Valid: nothing speaks against it. Suspect: read the reasons before you quote a number. Void: "
            "do not use it. The checks look at the generator, the GPU, the caches, failures and the number "
            "of turns.",
            w=6,
            h=4,
            empty=NOT_YET,
            background=True,
            steps=[(None, p.GREEN), (1, p.ORANGE), (2, p.RED)],
            mappings=[VALIDITY_LEVELS],
        ),
        p.table(
            "Why",
            [reasons],
            "What the checks found. Simulated engines are no engines: their figures show how a comparison "
            "looks.",
            columns=["validity", "simulated", "reasons", "run"],
            w=18,
            h=4,
            empty=NOT_YET,
            overrides=[
                shared.validity_column(),
                shared.simulated_column(),
                p.for_field("reasons", custom__wrapText=True, noValue="nothing speaks against it"),
                p.for_field("run", custom__width=330),
            ],
        ),
    ]


def _uses() -> Json:
    query = table(f"""
        SELECT last("better") AS "better", last("verdict") AS "verdict", last("validity") AS "validity",
            last("simulated") AS "simulated"
        FROM "run_summary"
        WHERE "metric" =~ {shared.either(shared.DECISIVE)} AND "scenario" =~ /^$scenario$/ AND $timeFilter
        GROUP BY "scenario", "metric"
    """)
    return p.table(
        "Which engine for which use: the newest run of each scenario in the time range",
        [query],
        "Not only the run that was picked: one line for each scenario and figure, so single user, long "
        "prompt and many users can be read together. An engine is named only where the 95 % interval of the "
        "ratio lies beyond the margin; with fewer than six blocks nothing is decided.",
        columns=["scenario", "metric", "better", "verdict", "validity", "simulated"],
        h=9,
        empty=NO_SUMMARY,
        sort=("scenario", False),
        overrides=[
            p.for_field("scenario", custom__width=150),
            shared.metric_column(),
            shared.better_column(),
            p.for_field("better", custom__width=150),
            p.for_field("verdict", custom__wrapText=True),
            shared.validity_column(),
            shared.simulated_column(),
        ],
    )


def _verdicts(metrics: tuple[str, ...] = ()) -> Json:
    """The rows of run_summary: of the decisive figures, or all."""
    some = f'"metric" =~ {shared.either(metrics)} AND ' if metrics else ""
    query = table(f"""
        SELECT last("value") AS "value", last("mean") AS "mean", last("p50") AS "p50", last("p95") AS "p95",
            last("p99") AS "p99", last("n") AS "n", last("baseline") AS "against", last("ratio") AS "ratio",
            last("ratio_low") AS "from", last("ratio_high") AS "to", last("blocks") AS "blocks",
            last("better") AS "better", last("verdict") AS "verdict"
        FROM "run_summary" WHERE {some}{RUN} GROUP BY "run", "metric", "engine"
    """)
    return p.table(
        "The run's own summary" if not metrics else "This run: figures, ratios, and which engine is better",
        [query],
        "From the requests of complete turns, warm-up left out; the same numbers as `loadgen summary`. "
        "`value` is the median where there is a distribution. `ratio` is this engine / the one it is held "
        "against, paired by block, with its 95 % interval: if that holds 1, or there are fewer than six "
        "blocks, nobody is better.",
        columns=["metric", "engine", "value", "mean", "p50", "p95", "p99", "n", *COMPARED, "verdict", "run"],
        h=10,
        empty=NO_SUMMARY,
        sort=("metric", False),
        overrides=[
            shared.metric_column(),
            shared.better_column(),
            *(p.for_field(name, decimals=1) for name in ("value", "mean", "p50", "p95", "p99")),
            *(p.for_field(name, decimals=3) for name in ("ratio", "from", "to")),
            *(p.for_field(name, decimals=0) for name in ("n", "blocks")),
            p.for_field("verdict", custom__minWidth=300),
        ],
    )


def _failed_share() -> Json:
    finished = f"\"outcome\" != 'cancelled' AND {MEASURED}"
    share = target(f'SELECT mean("failed") FROM "llm_request" WHERE {finished} {BY_ENGINE}', "$tag_engine")
    return p.stat(
        "Failed, of measured requests",
        [share],
        "Share of measured requests that failed; requests of users who were stopped count as neither.",
        unit="percentunit",
        w=16,
        h=8,
        empty=curves.NO_REQUESTS,
        steps=[(None, p.GREEN), (0.000001, p.ORANGE), (0.01, p.RED)],
    )
