"""Grafana's JSON model as plain dicts: a dashboard, its variables, its links, its annotations, its layout.

The types are those of @grafana/schema 13.2 (scripts/dashboard_types.sh checks the JSON against them).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

DATASOURCE: Json = {"type": "influxdb", "uid": "loadgen-influxdb"}
SCHEMA_VERSION = 41
WIDTH = 24

# (uid, title, whether the time range is taken along): Live wants the last minutes, Trend the last months.
PLACES = (
    ("loadgen-comparison", "Comparison", True),
    ("loadgen-live", "Live run", False),
    ("loadgen-gpu", "GPU and engine", True),
    ("loadgen-trend", "Trend", False),
)


def dashboard(
    uid: str,
    title: str,
    description: str,
    *,
    since: str,
    refresh: str = "",
    variables: Iterable[Json],
    annotations: Iterable[Json] = (),
    rows: Iterable[Json],
) -> Json:
    """A dashboard; `rows` are of `row` below, `since` is the beginning of its time range (`now-6h`)."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["loadgen"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": since, "to": "now"},
        "refresh": refresh,
        "timepicker": {"refresh_intervals": ["2s", "5s", "10s", "30s", "1m", "5m"]},
        "links": [_link(*place) for place in PLACES if place[0] != uid],
        "templating": {"list": list(variables)},
        "annotations": {"list": [_BUILT_IN, *annotations]},
        "panels": _placed(rows),
    }


def row(title: str, *lines: list[Json], collapsed: bool = False) -> Json:
    """A titled row of a dashboard; each line is a list of panels side by side. Collapsed, it asks nothing of
    the database until somebody opens it."""
    return {"title": title, "lines": lines, "collapsed": collapsed}


def variable(
    name: str,
    label: str,
    query: str,
    *,
    multi: bool = False,
    everything: bool = False,
    newest_first: bool = False,
    description: str = "",
) -> Json:
    """A picker whose values InfluxQL finds, anew when the time range changes. `everything` adds All."""
    out: Json = {
        "type": "query",
        "name": name,
        "label": label,
        "description": description,
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 2 if newest_first else 1,
        "multi": multi,
        "includeAll": everything,
        "options": [],
    }
    if everything:
        out["allValue"] = ".*"
        out["current"] = {
            "selected": True,
            "text": ["All"] if multi else "All",
            "value": ["$__all"] if multi else "$__all",
        }
    return out


def choice(name: str, label: str, options: dict[str, str], description: str = "") -> Json:
    """A picker with fixed values: {what is shown: value}; the first is the default."""
    made = [{"selected": i == 0, "text": t, "value": v} for i, (t, v) in enumerate(options.items())]
    return {
        "type": "custom",
        "name": name,
        "label": label,
        "description": description,
        "query": ", ".join(f"{text} : {value}" for text, value in options.items()),
        "options": made,
        "current": made[0],
        "multi": False,
        "includeAll": False,
    }


def annotation(name: str, color: str, query: str, *, end: str = "", shown: bool = True) -> Json:
    """Marks made of run events: the query selects "title", "text", "tags" and, for regions, `end`.

    Grafana drops a row in which one of them is null, takes the time for a text that is not selected, and
    knows the end by its column's full name alone.
    """
    target = {
        "refId": "annotation",
        "query": query,
        "rawQuery": True,
        "fromAnnotations": True,
        "titleColumn": "title",
        "textColumn": "text",
        "tagsColumn": "tags",
        "timeEndColumn": f"run_event.{end}" if end else "",
        "name": name,
        "limit": 0,
        "matchAny": False,
        "tags": [],
        "type": "",
    }
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": shown,
        "hide": False,
        "iconColor": color,
        "target": target,
    }


def queries(panels: Iterable[Json]) -> Iterable[tuple[Json, Json]]:
    """(panel, target) of every query, in collapsed rows too."""
    for panel in panels:
        yield from ((panel, target) for target in panel.get("targets", []))
        yield from queries(panel.get("panels", []))


_BUILT_IN: Json = {
    "builtIn": 1,
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "rgba(0, 211, 255, 1)",
    "name": "Annotations & Alerts",
    "type": "dashboard",
}


def _link(uid: str, title: str, keep_time: bool) -> Json:
    return {
        "type": "link",
        "title": title,
        "url": f"/d/{uid}",
        "icon": "dashboard",
        "tooltip": "",
        "tags": [],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": keep_time,
        "targetBlank": False,
    }


def _placed(rows: Iterable[Json]) -> list[Json]:
    """Panels with numbers and places. A line's panels lie side by side; a collapsed row holds its panels."""
    out: list[Json] = []
    y, number = 0, 0
    for part in rows:
        holder = out
        if part["title"]:
            number += 1
            header = {
                "type": "row",
                "id": number,
                "title": part["title"],
                "collapsed": part["collapsed"],
                "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1},
                "panels": [],
            }
            out.append(header)
            holder = header["panels"] if part["collapsed"] else out
            y += 1
        below = y
        for line in part["lines"]:
            x = 0
            for panel in line:
                number += 1
                width, height = panel["gridPos"]["w"], panel["gridPos"]["h"]
                holder.append(
                    {**panel, "id": number, "gridPos": {"x": x, "y": below, "w": width, "h": height}}
                )
                x += width
            assert x <= WIDTH, f"a line of {part['title']!r} is {x} wide"
            below += max(panel["gridPos"]["h"] for panel in line)
        if not part["collapsed"]:
            y = below
    return out
