"""Pieces of InfluxQL, and targets made of it.

Only what InfluxDB 1.8, 2.x and 3 Core all answer: no SLIMIT, no SHOW SERIES, every query within $timeFilter.
A variable stands in a regular expression, `"run" =~ /^$run$/`, whether one value is chosen or several.
"""

from __future__ import annotations

from typing import Any

from grafana.dashboards.model import DATASOURCE

RUN = '"run" =~ /^$run$/ AND $timeFilter'
MEASURED = f"\"phase\" = 'measure' AND {RUN}"
OK = f"\"outcome\" = 'ok' AND {MEASURED}"
OK_OR_WARMUP = f"\"outcome\" = 'ok' AND {RUN}"
BY_ENGINE = 'GROUP BY "engine"'


def over_time(select: str, source: str, *tags: str, where: str = RUN, fill: str = "null") -> str:
    """A figure for each interval of the screen, and for each value of the tags."""
    groups = ", ".join(["time($__interval)", *(f'"{tag}"' for tag in tags)])
    return f'SELECT {select} FROM "{source}" WHERE {where} GROUP BY {groups} fill({fill})'


def target(query: str, alias: str = "", *, table: bool = False) -> dict[str, Any]:
    """One query of a panel. In an alias `$tag_engine` is a tag's value, `$col` the column's name."""
    return {
        "datasource": DATASOURCE,
        "query": " ".join(query.split()),
        "rawQuery": True,
        "resultFormat": "table" if table else "time_series",
        "alias": alias,
    }


def table(query: str) -> dict[str, Any]:
    """One query whose rows are a table: a column `Time`, one for each tag grouped by, then those selected."""
    return target(query, table=True)


def tag_values(source: str, tag: str, where: str = "") -> str:
    """The values of a tag in the time range, for a picker."""
    condition = f"{where} AND $timeFilter" if where else "$timeFilter"
    return f'SHOW TAG VALUES FROM {source} WITH KEY = "{tag}" WHERE {condition}'


def percentiles(field: str, *which: int) -> str:
    """Nearest rank, as in the summary: `percentile("ttft_ms", 50) AS "p50", ...`."""
    return ", ".join(f'percentile("{field}", {p}) AS "p{p}"' for p in which)


def by_second(field: str, *tags: str, outer: str = "mean") -> str:
    """A count of llm_window, summed over workers second by second, then its mean over each interval.

    Not the sum over an interval / its length: the newest interval is never complete, and would look slow.
    """
    seconds = over_time(f'sum("{field}") AS "all"', "llm_window", "engine", fill="none")
    seconds = seconds.replace("$__interval", "1s")
    return over_time(f'{outer}("all")', "", *tags, where="$timeFilter").replace('""', f"({seconds})")
