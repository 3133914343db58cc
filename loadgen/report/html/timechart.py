"""The chart of a run in time: engines above, GPUs beneath, one axis of time. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.report.html.charts import Chart
from loadgen.report.html.markup import plot_text
from loadgen.report.html.timeline import Course, Line
from loadgen.report.html.words import BAD, NEUTRAL, PALETTE

ROW_PX = 104
GAP_PX = 34
EDGES_PX = 60
MOST_SHADED = 300

# Field, title, unit; of GPUs also a multiplier and whether the axis begins at 0.
ENGINE_ROWS = (
    ("tokens_per_s", "throughput", "tokens/s"),
    ("in_flight", "requests in flight", ""),
    ("ttft_ms", "TTFT", "ms"),
)
GPU_ROWS = (
    ("sm_clock_mhz", "GPU clock", "MHz", 1.0, True),
    ("temperature_c", "GPU temperature", "°C", 1.0, False),
    ("power_w", "GPU power", "W", 1.0, True),
    ("memory_used_bytes", "GPU memory in use", "GiB", 2.0**-30, True),
)


@dataclass
class _Row:
    title: str
    traces: list[dict[str, Any]]
    to_zero: bool = True


def time_chart(run: Course, colours: Mapping[str, int]) -> Chart | None:
    """None where there is nothing to draw."""
    scale, unit = _unit(run.seconds)
    rows = [row for row in (*_engines(run, colours, scale), *_gpus(run, scale)) if row.traces]
    if not rows:
        return None
    height = len(rows) * ROW_PX + (len(rows) - 1) * GAP_PX + EDGES_PX
    inner = height - EDGES_PX
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "shapes": _turns(run, colours, scale)}
    for n, row in enumerate(rows):
        top = 1 - n * (ROW_PX + GAP_PX) / inner
        axis = "y" if n == 0 else f"y{n + 1}"
        layout[axis.replace("y", "yaxis")] = {
            "domain": [max(top - ROW_PX / inner, 0.0), top],
            "anchor": "x",
            "nticks": 4,
            "rangemode": "tozero" if row.to_zero else "normal",
        }
        layout["annotations"].append(
            {"text": row.title, "xref": "paper", "yref": "paper", "x": 0, "y": top, "showarrow": False}
            | {"xanchor": "left", "yanchor": "bottom", "font": {"size": 13}}
        )
        data += [{**trace, "xaxis": "x", "yaxis": axis} for trace in row.traces]
    layout["xaxis"] = {
        "anchor": "y" if len(rows) == 1 else f"y{len(rows)}",
        "range": [0, run.seconds * scale],
        "title": {"text": f"{unit} since the run began", "standoff": 8},
        "nticks": 8,
        "showspikes": True,
        "spikemode": "across",
        "spikethickness": 1,
        "spikedash": "solid",
    }
    layout |= {"hovermode": "x unified", "hoversubplots": "axis"}
    step = "a second" if run.step_s == 1 else f"{run.step_s} seconds"
    about = f"a point is {step}; shaded: whose turn it is (paler where it was cut short)"
    return Chart("In time", about, data, layout, height)


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 600:
        return 1.0, "seconds"
    return (1 / 60, "minutes") if seconds < 3 * 3600 else (1 / 3600, "hours")


def _engines(run: Course, colours: Mapping[str, int], scale: float) -> list[_Row]:
    rows = []
    for field, title, unit in ENGINE_ROWS:
        traces = []
        for name, engine in run.engines.items():
            colour = PALETTE[colours.get(name, 0)]
            line: Line = getattr(engine, field)
            if line.x:
                traces.append(_trace(name, line, colour, unit, scale) | {"mode": "lines+markers"})
        rows.append(_Row(f"{title}, {unit}" if unit else title, traces))
    return rows


def _gpus(run: Course, scale: float) -> list[_Row]:
    rows = []
    for field, title, unit, times, to_zero in GPU_ROWS:
        traces = []
        for n, gpu in enumerate(run.gpus):
            if (line := gpu.lines.get(field)) is not None:
                scaled = Line(line.x, [None if y is None else round(y * times, 3) for y in line.y])
                traces.append(_trace(gpu.name, scaled, NEUTRAL[n % len(NEUTRAL)], unit, scale))
        if field == "sm_clock_mhz":
            traces += [
                _trace(f"{gpu.name} held back", gpu.held, BAD, unit, scale)
                | {"mode": "markers", "marker": {"symbol": "x", "size": 5, "color": BAD}}
                for gpu in run.gpus
                if gpu.held.x
            ]
        rows.append(_Row(f"{title}, {unit}", traces, to_zero))
    return rows


def _trace(name: str, line: Line, colour: str, unit: str, scale: float) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot_text(name),
        "x": line.x if scale == 1 else [float(f"{x * scale:.6g}") for x in line.x],
        "y": line.y,
        "line": {"color": colour, "width": 1.5},
        "marker": {"color": colour, "size": 3},
        "hovertemplate": f"%{{y:,.4~g}} {unit}".rstrip(),
    }


def _turns(run: Course, colours: Mapping[str, int], scale: float) -> list[dict[str, Any]]:
    """A band for each turn; none where they would be thinner than lines."""
    bands = [
        (start, end, PALETTE[colours.get(name, 0)], complete)
        for name, engine in run.engines.items()
        for start, end, complete in engine.turns
    ]
    if len(bands) > MOST_SHADED:
        return []
    return [
        {
            "type": "rect",
            "xref": "x",
            "yref": "paper",
            "x0": start * scale,
            "x1": end * scale,
            "y0": 0,
            "y1": 1,
            "fillcolor": colour,
            "opacity": 0.1 if complete else 0.04,
            "line": {"width": 0},
            "layer": "below",
        }
        for start, end, colour, complete in bands
    ]
