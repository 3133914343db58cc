"""The dashboards, as functions that make Grafana's JSON model; `python grafana/build.py` writes it."""

from collections.abc import Callable
from typing import Any

from grafana.dashboards import comparison, gpu, live, trend

DASHBOARDS: dict[str, Callable[[], dict[str, Any]]] = {
    "comparison": comparison.dashboard,
    "live": live.dashboard,
    "gpu": gpu.dashboard,
    "trend": trend.dashboard,
}
