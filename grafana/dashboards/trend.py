"""Trend: runs over time. Did something get slower since last week?"""

from __future__ import annotations

from typing import Any

from grafana.dashboards import panels as p
from grafana.dashboards import shared
from grafana.dashboards.influxql import BY_ENGINE, tag_values, target
from grafana.dashboards.model import choice, row, variable
from grafana.dashboards.model import dashboard as make

Json = dict[str, Any]

CHOSEN = (
    '"scenario" =~ /^$scenario$/ AND "engine" =~ /^$engine$/ '
    'AND "validity_level" <= $worst AND "simulated" <= $simulated AND $timeFilter'
)
EMPTY = (
    "No such runs: widen the time range, or let in suspect runs or simulated engines with the pickers above"
)


def dashboard() -> Json:
    return make(
        "loadgen-trend",
        "Trend",
        "Runs over time: did something get slower since last week?",
        since="now-90d",
        variables=[
            variable(
                "scenario",
                "Scenario",
                tag_values('"run_summary"', "scenario"),
                description=shared.SCENARIO_HELP,
            ),
            variable("engine", "Engine", tag_values('"run_summary"', "engine"), multi=True, everything=True),
            choice(
                "worst",
                "Runs",
                {"valid and suspect": "1", "valid only": "0", "void too": "2"},
                "Which runs are shown, by what their checks said.",
            ),
            choice(
                "simulated",
                "Engines",
                {"real": "0", "real and simulated": "1"},
                "Simulated engines show what a trend looks like, and must not stand among real ones "
                "unnoticed.",
            ),
        ],
        rows=[
            row("Speed", _speed(), _latency()),
            row(
                "One engine against the other",
                [_ratio("TTFT", "ttft_ms"), _ratio("throughput", "throughput_tokens_per_s")],
            ),
            row("Trouble", [_failures(), _validity()]),
            row(
                "Runs",
                [shared.runs_table("Runs", '"scenario" =~ /^$scenario$/ AND $timeFilter', _RUNS, h=12)],
            ),
        ],
    )


_RUNS = "Every run of the scenario in the time range. A click on one opens it elsewhere, at its own time."


def _points(title: str, metric: str, fields: dict[str, str], about: str, **look: Any) -> Json:
    """A point a run; {field: name in the legend}."""
    selected = ", ".join(f'"{field}" AS "{name}"' for field, name in fields.items())
    query = f'SELECT {selected} FROM "run_summary" WHERE "metric" = \'{metric}\' AND {CHOSEN} {BY_ENGINE}'
    alias = "$tag_engine" if len(fields) == 1 else "$tag_engine $col"
    look = {
        "overrides": [*p.engine_colors(), p.dashed("(p95|from|to)$")],
        "calcs": ("lastNotNull", "mean"),
        **look,
    }
    panel = p.timeseries(
        title, [target(query, alias)], f"{about} One point a run, at its start.", empty=EMPTY, **look
    )
    panel["fieldConfig"]["defaults"]["custom"].update(showPoints="always", pointSize=7)
    return panel


def _speed() -> list[Json]:
    return [
        _points(
            "Throughput", "throughput_tokens_per_s", {"value": "value"}, "All users together.", unit=p.TOKENS
        ),
        _points(
            "Decode speed of one request", "decode_tokens_per_s", {"p50": "p50"}, "Median.", unit=p.TOKENS
        ),
    ]


def _latency() -> list[Json]:
    both = {"p50": "p50", "p95": "p95"}
    return [
        _points("TTFT", "ttft_ms", both, "Median and p95.", unit="ms", w=8),
        _points("TPOT", "tpot_ms", both, "Median and p95.", unit="ms", w=8),
        _points("End to end", "e2e_ms", both, "Median and p95.", unit="ms", w=8),
    ]


def _ratio(title: str, metric: str) -> Json:
    return _points(
        f"Ratio of {title}",
        metric,
        {"ratio": "ratio", "ratio_low": "from", "ratio_high": "to"},
        "This engine / the other one, paired by block, with its 95 % interval. Drift of the machine cancels "
        "out here.",
        low=None,
    )


def _failures() -> Json:
    return _points("Failed requests", "failures", {"value": "value"}, "Of complete turns.", w=12)


def _validity() -> Json:
    query = (
        'SELECT max("validity_level") FROM "run_summary" WHERE "scenario" =~ /^$scenario$/ AND $timeFilter '
        'GROUP BY "run"'
    )
    levels = p.value_map((str(i), name, color) for i, (name, color) in enumerate(p.VALIDITY))
    panel = p.stat(
        "Validity of every run",
        [target(query, "$tag_run")],
        "Void runs too, whatever the picker says.",
        w=12,
        h=8,
        background=True,
        steps=[(None, p.GREEN), (1, p.ORANGE), (2, p.RED)],
        mappings=[levels],
        empty=EMPTY,
    )
    panel["options"]["orientation"] = "horizontal"
    return panel
