"""Panels: the few kinds that the dashboards use, with the options that they share.

`w` and `h` are grid units (a dashboard is 24 wide). `empty` is what stands there when there is no data, and
says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from grafana.dashboards.model import DATASOURCE

Json = dict[str, Any]

GREEN, ORANGE, RED, GREY, BLUE = "green", "orange", "red", "#8e8e8e", "blue"
TOKENS = "suffix:tok/s"
MHZ = "suffix:MHz"
NO_DATA = "No data in this time range: choose another range at the top right, then the run"

VALIDITY = [("valid", GREEN), ("suspect", ORANGE), ("void", RED)]


def timeseries(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    unit: str = "short",
    w: int = 12,
    h: int = 8,
    empty: str = NO_DATA,
    low: float | None = 0,
    high: float | None = None,
    points: bool = False,
    stacked: bool = False,
    spans_ms: int = 0,
    calcs: Sequence[str] = ("mean", "max"),
    overrides: Sequence[Json] = (),
) -> Json:
    """Lines over time; `points` draws dots alone; gaps up to `spans_ms` long are drawn over."""
    custom: Json = {
        "drawStyle": "points" if points else "line",
        "lineWidth": 1,
        "pointSize": 4,
        "showPoints": "always" if points else "auto",
        "spanNulls": spans_ms or False,
        "fillOpacity": 25 if stacked else 0,
        "axisSoftMin": low,
    }
    if stacked:
        custom["stacking"] = {"mode": "normal", "group": "A"}
    if low is None:
        del custom["axisSoftMin"]
    options = {
        "legend": {
            "displayMode": "table" if calcs else "list",
            "placement": "bottom",
            "showLegend": True,
            "calcs": list(calcs),
        },
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    panel = _panel("timeseries", title, about, targets, w, h, options, unit, empty, custom, overrides)
    # Nothing is written more often than once a second; finer intervals would be mostly empty.
    panel["interval"] = "1s"
    if high is not None:
        panel["fieldConfig"]["defaults"]["max"] = high
    return panel


def stat(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    unit: str = "short",
    w: int = 6,
    h: int = 4,
    empty: str = NO_DATA,
    steps: Sequence[tuple[float | None, str]] = ((None, "text"),),
    mappings: Sequence[Json] = (),
    background: bool = False,
    names: bool = True,
    graph: bool = False,
    decimals: int | None = None,
) -> Json:
    """Big figures, one a series: the last that is not null."""
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "orientation": "auto",
        "textMode": "value_and_name" if names else "value",
        "colorMode": "background" if background else "value",
        "graphMode": "area" if graph else "none",
        "justifyMode": "auto",
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "wideLayout": True,
    }
    panel = _panel("stat", title, about, targets, w, h, options, unit, empty)
    defaults = panel["fieldConfig"]["defaults"]
    defaults["color"] = {"mode": "thresholds"}
    defaults["thresholds"] = thresholds(steps)
    defaults["mappings"] = list(mappings)
    if decimals is not None:
        defaults["decimals"] = decimals
    if graph:
        panel["interval"] = "1s"
    return panel


def bars(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    unit: str,
    w: int = 6,
    h: int = 9,
    empty: str = NO_DATA,
) -> Json:
    """Bars side by side for each engine, from a table with the column `engine`."""
    options = {
        "xField": "engine",
        "orientation": "vertical",
        "showValue": "always",
        "stacking": "none",
        "groupWidth": 0.8,
        "barWidth": 0.9,
        "barRadius": 0,
        "fullHighlight": False,
        "xTickLabelRotation": 0,
        "xTickLabelMaxLength": 24,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    custom = {"lineWidth": 0, "fillOpacity": 85, "axisSoftMin": 0}
    panel = _panel("barchart", title, about, targets, w, h, options, unit, empty, custom)
    panel["fieldConfig"]["defaults"]["color"] = {"mode": "palette-classic"}
    panel["transformations"] = [organize([])]
    return panel


def histogram(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    unit: str,
    w: int = 8,
    h: int = 8,
    empty: str = NO_DATA,
) -> Json:
    """How often which value: one histogram a series, from the values themselves."""
    options = {
        "bucketCount": 40,
        "combine": False,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    custom = {"lineWidth": 1, "fillOpacity": 40}
    return _panel("histogram", title, about, targets, w, h, options, unit, empty, custom, engine_colors())


def timeline(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    mappings: Sequence[Json],
    w: int = 24,
    h: int = 6,
    empty: str = NO_DATA,
    overrides: Sequence[Json] = (),
) -> Json:
    """States over time, a band a series."""
    options = {
        "mergeValues": True,
        "showValue": "never",
        "rowHeight": 0.85,
        "alignValue": "left",
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    custom = {"lineWidth": 0, "fillOpacity": 80}
    panel = _panel("state-timeline", title, about, targets, w, h, options, "short", empty, custom, overrides)
    panel["fieldConfig"]["defaults"]["mappings"] = list(mappings)
    panel["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}
    panel["fieldConfig"]["defaults"]["thresholds"] = thresholds([(None, "transparent")])
    panel["interval"] = "1s"
    return panel


def table(
    title: str,
    targets: Sequence[Json],
    about: str,
    *,
    columns: Sequence[str | tuple[str, str]],
    w: int = 24,
    h: int = 8,
    empty: str = NO_DATA,
    overrides: Sequence[Json] = (),
    sort: tuple[str, bool] | None = None,
    keep_time: bool = False,
    before: Sequence[Json] = (),
) -> Json:
    """A table with its columns in this order: names, or (name, what the header says). `sort`: (header,
    descending). The order is given because Grafana puts the tags of a group in no particular one."""
    named = [c if isinstance(c, tuple) else (c, c) for c in columns]
    options: Json = {"showHeader": True, "cellHeight": "sm", "frameIndex": 0}
    if sort:
        options["sortBy"] = [{"displayName": sort[0], "desc": sort[1]}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
    panel = _panel("table", title, about, targets, w, h, options, "short", empty, custom, overrides)
    panel["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}
    panel["fieldConfig"]["defaults"]["thresholds"] = thresholds([(None, "text")])
    panel["transformations"] = [*before, organize(named, keep_time=keep_time)]
    return panel


def text(content: str, *, w: int = 24, h: int = 3) -> Json:
    """Words on the dashboard, in Markdown."""
    return {
        "type": "text",
        "title": "",
        "transparent": True,
        "gridPos": {"w": w, "h": h},
        "options": {"mode": "markdown", "content": content},
    }


def organize(columns: Sequence[tuple[str, str]], *, keep_time: bool = False) -> Json:
    """Order and rename columns; the time of an aggregate says nothing and is left out."""
    hidden = () if keep_time else ("Time", "time", "Time 1", "Time 2", "Time 3")
    return {
        "id": "organize",
        "options": {
            "excludeByName": dict.fromkeys(hidden, True),
            "indexByName": {name: i for i, (name, _) in enumerate(columns)},
            "renameByName": {name: shown for name, shown in columns if name != shown},
        },
    }


def for_field(name: str, **properties: Any) -> Json:
    """An override for the field that is shown under this name; `__` in a key stands for a dot."""
    return _override("byName", name, properties)


def for_fields(pattern: str, **properties: Any) -> Json:
    """An override for the fields whose names match a regular expression."""
    return _override("byRegexp", f"/{pattern}/", properties)


def value_map(values: Iterable[tuple[str, str, str | None]]) -> Json:
    """(value, what is shown, colour)."""
    options = {}
    for index, (value, shown, color) in enumerate(values):
        options[value] = {"text": shown, "index": index, **({"color": color} if color else {})}
    return {"type": "value", "options": options}


def pattern_map(pattern: str, shown: str, color: str) -> Json:
    """A mapping of all values that match; `$1` in `shown` is the first group."""
    return {
        "type": "regex",
        "options": {"pattern": pattern, "result": {"text": shown, "color": color, "index": 9}},
    }


def thresholds(steps: Sequence[tuple[float | None, str]]) -> Json:
    return {"mode": "absolute", "steps": [{"value": value, "color": color} for value, color in steps]}


def engine_colors() -> list[Json]:
    """The two engines of the field in the same colours on every panel; other names take the palette's."""
    return [
        for_fields("^vllm", color={"mode": "fixed", "fixedColor": BLUE}),
        for_fields("^llama", color={"mode": "fixed", "fixedColor": ORANGE}),
    ]


def dashed(pattern: str) -> Json:
    """Series that match are dashed: the tail beside the median in the same colour."""
    return for_fields(pattern, custom__lineStyle={"fill": "dash", "dash": [6, 6]})


def right_axis(pattern: str, unit: str, **more: Any) -> Json:
    return for_fields(pattern, unit=unit, custom__axisPlacement="right", **more)


def _override(matcher: str, options: str, properties: dict[str, Any]) -> Json:
    made = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": matcher, "options": options}, "properties": made}


def _panel(
    kind: str,
    title: str,
    about: str,
    targets: Sequence[Json],
    w: int,
    h: int,
    options: Json,
    unit: str,
    empty: str,
    custom: Json | None = None,
    overrides: Sequence[Json] = (),
) -> Json:
    defaults: Json = {"unit": unit, "noValue": empty, "color": {"mode": "palette-classic-by-name"}}
    if custom is not None:
        defaults["custom"] = custom
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": DATASOURCE,
        "gridPos": {"w": w, "h": h},
        "targets": [{"refId": chr(ord("A") + i), **target} for i, target in enumerate(targets)],
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
    }
