"""Charts of distributions and curves, as data for Plotly. Pure.

A chart has no colours of its own but those of engines, which are seen well on light and dark: text and grid
get theirs from the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loadgen.report.html.markup import plot_text
from loadgen.report.html.samples import Distribution
from loadgen.report.html.words import PALETTE

DASHES = ("solid", "6px,2px", "2px,2px")
LOG_BEYOND = 30.0  # a longer range of values is drawn on a logarithmic axis
LEAST_GAP_MS = 0.001


@dataclass(frozen=True)
class Chart:
    """`title` and `about` stand above it; `height` is in pixels."""

    title: str
    about: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 280


def ecdf(title: str, unit: str, curves: Mapping[str, Distribution], colours: Mapping[str, int]) -> Chart:
    """What share of requests took at most how long."""
    low = min(float(c.value[0]) for c in curves.values())
    high = max(float(c.value[-1]) for c in curves.values())
    log = low > 0 and high / low > LOG_BEYOND
    data = []
    for engine, curve in curves.items():
        # From the ground up, and level to the right edge: where all curves have reached 100 %.
        x = [curve.value[0], *curve.value, max(high, curve.value[-1])]
        data.append(
            {
                **_line(engine, colours),
                "x": _rounded(x),
                "y": [0, *np.round(curve.share, 6).tolist(), 1],
                "line": {**_stroke(engine, colours), "shape": "hv"},
                "hovertemplate": _hover(engine, f"%{{y:.1%}} within %{{x:,.4~g}} {unit}"),
            }
        )
    axis = (
        _log_axis(low, high) if log else {"rangemode": "tozero" if low < high / 3 else "normal", "nticks": 6}
    )
    counted = ", ".join(f"{engine} {curve.n:,}" for engine, curve in curves.items())
    about = f"share of requests within so many {unit}{', logarithmic' if log else ''}; requests: {counted}"
    layout = {
        "xaxis": {**axis, "ticksuffix": "" if log else f" {unit}"},
        "yaxis": {"range": [0, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 0.95], "tickformat": ".0%"},
        "hovermode": "closest",
    }
    return Chart(title, about, data, layout)


def pauses(title: str, curves: Mapping[str, Distribution], colours: Mapping[str, int]) -> Chart:
    """How often the text stands still for longer than so long: both axes logarithmic, since what annoys is
    rare."""
    data, low, high, least = [], math.inf, 0.0, 1.0
    for engine, curve in curves.items():
        x = np.maximum(curve.value, LEAST_GAP_MS)
        beyond = np.concatenate(([1.0], 1.0 - curve.share[:-1]))  # the share that is this long or longer
        low, high = min(low, float(x[0])), max(high, float(x[-1]))
        least = min(least, float(beyond[-1]))
        data.append(
            {
                **_line(engine, colours),
                "x": _rounded(x),
                "y": [float(f"{v:.4g}") for v in beyond.tolist()],
                "line": {**_stroke(engine, colours), "shape": "vh"},
                "hovertemplate": _hover(engine, "%{y:.3~%} of gaps: %{x:,.4~g} ms or longer"),
            }
        )
    decades = range(math.floor(math.log10(max(least, 1e-9))), 1)
    counted = ", ".join(f"{engine} {curve.n:,}" for engine, curve in curves.items())
    layout = {
        "xaxis": _log_axis(low, high),
        "yaxis": {
            "type": "log",
            "range": [decades[0] - 0.1, 0.1],
            "tickvals": [10.0**d for d in decades],
            "ticktext": ["all" if d == 0 else f"1 in {10**-d:,}" for d in decades],
        },
        "hovermode": "closest",
    }
    return Chart(
        title, f"how many gaps are so many ms or longer, both logarithmic; gaps: {counted}", data, layout
    )


def load_curve(
    title: str,
    about: str,
    unit: str,
    curves: Mapping[str, Sequence[Mapping[str, Any]]],
    colours: Mapping[str, int],
    *,
    load_unit: str = "users",
) -> Chart:
    """Latency against throughput as the load grows: a point (`x`, `y`, `users`, `mark`) each step; `users` is
    of what `load_unit` says."""
    data = []
    for engine, points in curves.items():
        sizes = [13 if p.get("mark") else 7 for p in points]
        data.append(
            {
                **_line(engine, colours),
                "mode": "lines+markers+text",
                "x": _rounded([p["x"] for p in points]),
                "y": _rounded([p["y"] for p in points]),
                "text": [plot_text(p["users"]) for p in points],
                "customdata": [plot_text(p.get("mark") or "") for p in points],
                "textposition": "top center",
                "marker": {"size": sizes, "color": PALETTE[colours.get(engine, 0)]},
                "line": _stroke(engine, colours),
                "hovertemplate": (
                    f"<b>{plot_text(engine)}</b>, %{{text}} {load_unit}<br>%{{x:,.4~g}} tokens/s<br>"
                    f"%{{y:,.4~g}} {unit}<br>%{{customdata}}<extra></extra>"
                ),
            }
        )
    ys = [p["y"] for points in curves.values() for p in points if p["y"]]
    log = bool(ys) and max(ys) / min(ys) > LOG_BEYOND
    layout = {
        "xaxis": {"rangemode": "tozero", "title": {"text": "tokens/s"}, "nticks": 6},
        "yaxis": {**(_log_axis(min(ys), max(ys)) if log else {"rangemode": "tozero", "nticks": 5})},
        "hovermode": "closest",
    }
    return Chart(title, about, data, layout, height=340)


def _hover(engine: str, words: str) -> str:
    return f"<b>{plot_text(engine)}</b><br>{words}<extra></extra>"


def _line(engine: str, colours: Mapping[str, int]) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": plot_text(engine)}


def _stroke(engine: str, colours: Mapping[str, int]) -> dict[str, Any]:
    n = colours.get(engine, 0)
    return {"color": PALETTE[n], "width": 2, "dash": DASHES[n % len(DASHES)]}


def _log_axis(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis with ticks at 1, 2 and 5, or whole decades where there are many."""
    a, b = math.log10(low), math.log10(high)
    pad = max(0.03 * (b - a), 0.02)
    steps = (1, 2, 5) if b - a < 2 else (1, 3) if b - a < 3 else (1,)
    ticks = [s * 10.0**d for d in range(math.floor(a) - 1, math.ceil(b) + 1) for s in steps]
    ticks = [t for t in ticks if a - pad <= math.log10(t) <= b + pad]
    return {
        "type": "log",
        "range": [a - pad, b + pad],
        "tickvals": ticks,
        "ticktext": [f"{t:,.0f}" if t >= 1 else f"{t:.3g}" for t in ticks],
    }


def _rounded(values: Any) -> list[float | None]:
    """Five significant digits: finer than a pixel, and a third of the bytes."""
    return [None if v is None or not math.isfinite(v) else float(f"{v:.5g}") for v in map(float, values)]
