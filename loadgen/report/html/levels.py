"""Figures by number of users, of a run in which that varied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadgen.report.html.charts import Chart, load_curve
from loadgen.report.html.markup import Html, tag
from loadgen.report.html.words import engine_mark
from loadgen.report.levels import users_text
from loadgen.report.plain import number

DRAWN = (("ttft_ms", "p95", "TTFT p95"), ("tpot_ms", "p50", "TPOT p50"), ("e2e_ms", "p50", "End to end p50"))
LEAST = 3  # with fewer there is no curve
HEADINGS = ("users", "for s", "requests", "TTFT ms", "TPOT ms", "tokens/s", "in flight")


def level_curves(engines: Mapping[str, Mapping[str, Any]], colours: Mapping[str, int]) -> list[Chart]:
    """Latency against throughput, a point for each number of users."""
    out = []
    for metric, part, title in DRAWN:
        curves = {
            name: points
            for name, figures in engines.items()
            if len(points := _points(figures, metric, part)) >= LEAST
        }
        if curves:
            about = "ms, against tokens per second in all; the numbers are users"
            if any(p["mark"] for points in curves.values() for p in points):
                about += "; large: knee"
            out.append(load_curve(title, about, "ms", curves, colours))
    return out


def _points(figures: Mapping[str, Any], metric: str, part: str) -> list[dict[str, Any]]:
    knee = figures.get("knee", {}).get("users")
    return [
        {
            "x": level["throughput_tokens_per_s"],
            "y": level[metric][part],
            "users": users_text(level),
            "mark": "knee" if round(level["users"]) == knee else "",
        }
        for level in figures.get("levels", ())
        if level["throughput_tokens_per_s"] is not None and level[metric]["n"]
    ]


def levels_table(engines: Mapping[str, Mapping[str, Any]], colours: Mapping[str, int]) -> Html:
    """All engines' levels, fewest users first."""
    head = tag("tr", *(tag("th", h, scope="col", class_="number") for h in HEADINGS))
    bodies = []
    for name, figures in engines.items():
        if not figures.get("levels"):
            continue
        mark = tag("th", engine_mark(name, colours), scope="rowgroup", colspan=str(len(HEADINGS)))
        rows = [tag("tr", *_cells(level)) for level in figures["levels"]]
        bodies.append(tag("tbody", tag("tr", mark), *rows))
    caption = tag("caption", "Large: median or the value. Small: p95.")
    table = tag("table", caption, tag("thead", head), *bodies, class_="figures")
    return tag("div", table, class_="scroll")


def _cells(level: Mapping[str, Any]) -> list[Html]:
    failed = tag("small", f"{level['failed']:,} failed") if level["failed"] else None
    values = (
        (f"{level['requests']:,}", failed),
        *(_stats(level[metric]) for metric in ("ttft_ms", "tpot_ms")),
        *((number(level[key]), None) for key in ("throughput_tokens_per_s", "concurrency")),
    )
    return [
        tag("th", users_text(level), scope="row"),
        tag("td", number(level["seconds"]), class_="number"),
        *(tag("td", value, small, class_="number") for value, small in values),
    ]


def _stats(stats: Mapping[str, Any]) -> tuple[str, Html | None]:
    if not stats["n"]:
        return "–", None
    return number(stats["p50"]), tag("small", number(stats["p95"]))
