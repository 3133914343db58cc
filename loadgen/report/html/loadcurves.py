"""Latency against throughput, where runs of one scenario differ in their users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.report.html.charts import Chart, load_curve
from loadgen.report.html.digest import Digest, by_load
from loadgen.report.html.markup import Html, join, tag
from loadgen.report.html.section import chart, legend

DRAWN = (("ttft_ms", "p95", "TTFT p95"), ("tpot_ms", "p50", "TPOT p50"), ("e2e_ms", "p50", "End to end p50"))


def load_curves(digests: Sequence[Digest], colours: Mapping[str, int]) -> Html | None:
    """None where there are fewer than three loads of a scenario."""
    parts: list[Html] = []
    for scenario, steps in by_load(digests).items():
        identity = f"load-{len(parts)}"
        charts = [chart(made, f"{identity}-{n}") for n, made in enumerate(_charts(steps, colours))]
        names = list(dict.fromkeys(name for d in steps for name in d.summary.engines))
        parts.append(
            tag(
                "section",
                tag("h2", f"Latency against throughput: {scenario.replace('_', ' ')}"),
                legend(names, colours),
                tag("div", *charts, class_="charts"),
                id=identity,
                class_="run",
            )
        )
    return join(*parts) if parts else None


def _charts(steps: Sequence[Digest], colours: Mapping[str, int]) -> list[Chart]:
    out = []
    for metric, part, title in DRAWN:
        curves: dict[str, list[dict[str, Any]]] = {}
        for d in steps:
            for name, figures in d.summary.engines.items():
                x = figures["window"]["throughput_tokens_per_s"]
                y = (figures.get(metric) or {}).get(part)
                if x is not None and y is not None:
                    curves.setdefault(name, []).append({"x": x, "y": y, "users": d.users})
        if curves:
            about = "ms, against tokens per second in all; the numbers are users"
            out.append(load_curve(title, about, "ms", curves, colours))
    return out
