"""Latency against throughput, where runs differ in their users or their rate: sweeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadgen.report.html.charts import Chart, load_curve
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.results import Loads, Results
from loadgen.report.html.section import chart, legend
from loadgen.sweep import Point
from loadgen.sweep.curve import knee, slo_edge
from loadgen.sweep.names import shown

DRAWN = (("ttft_ms", "p95", "TTFT p95"), ("tpot_ms", "p50", "TPOT p50"), ("e2e_ms", "p50", "End to end p50"))


def load_curves(results: Results, colours: Mapping[str, int]) -> Html | None:
    """A section for each sweep; None without any."""
    parts: list[Html] = []
    for loads in results.loads():
        identity = f"load-{len(parts)}"
        charts = [chart(made, f"{identity}-{n}") for n, made in enumerate(_charts(loads, colours))]
        names = list(dict.fromkeys(name for d in loads.steps for name in d.summary.engines))
        title = f"Latency against throughput: {loads.title.replace('_', ' ')}"
        parts.append(
            tag(
                "section",
                tag("h2", title),
                legend(names, colours),
                tag("div", *charts, class_="charts"),
                id=identity,
                class_="run",
            )
        )
    return join(*parts) if parts else None


def _charts(loads: Loads, colours: Mapping[str, int]) -> list[Chart]:
    out = []
    marks = _marks(loads)
    for metric, part, title in DRAWN:
        curves: dict[str, list[dict[str, Any]]] = {}
        for d in loads.steps:
            for name, figures in d.summary.engines.items():
                x = figures["window"]["throughput_tokens_per_s"]
                y = (figures.get(metric) or {}).get(part)
                if x is not None and y is not None:
                    mark = marks.get((name, d.load or 0), "")
                    curves.setdefault(name, []).append(
                        {"x": x, "y": y, "users": shown(d.load or 0), "mark": mark}
                    )
        if curves:
            about = f"ms, against tokens per second in all; the numbers are {loads.unit}"
            if any(marks.values()):
                about += "; large: " + ", ".join(dict.fromkeys(marks.values()))
            out.append(load_curve(title, about, "ms", curves, colours, load_unit=loads.unit))
    return out


def _marks(loads: Loads) -> dict[tuple[str, float], str]:
    """What a sweep found of a step: its knee, and the last within the SLO."""
    if loads.sweep is None:
        return {}
    out: dict[tuple[str, float], str] = {}
    for name in loads.sweep.engines:
        points: list[Point] = loads.sweep.points(name)
        if found := knee(points, loads.sweep.plan.margin):
            out[name, found.load] = "knee"
        within = slo_edge(points).within if loads.sweep.plan.slo else None
        if within is not None:
            out[name, within] = " and ".join(
                filter(None, (out.get((name, within)), "highest within the SLO"))
            )
    return out
