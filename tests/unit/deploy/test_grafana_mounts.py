"""Grafana's container has what the provisioning files ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.compose import ROOT, services

PROVISIONING = ROOT / "grafana" / "provisioning"


@pytest.fixture
def grafana(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = services(tmp_path)["grafana"]
    return found


def in_container(service: dict[str, Any], path: str) -> Path:
    """The file of the repository that the container sees at this path."""
    for mount in service["volumes"]:
        if mount["type"] == "bind" and Path(path).is_relative_to(mount["target"]):
            return Path(mount["source"]) / Path(path).relative_to(mount["target"])
    raise AssertionError(f"nothing is mounted at {path}")


def test_provisioning_is_where_grafana_looks(grafana: dict[str, Any]) -> None:
    assert in_container(grafana, "/etc/grafana/provisioning") == PROVISIONING


def test_dashboards_are_where_their_provider_looks(grafana: dict[str, Any]) -> None:
    [provider] = (PROVISIONING / "dashboards").glob("*.y*ml")
    paths = re.findall(r"^\s+path: (\S+)$", provider.read_text(), re.M)
    assert [sorted(p.name for p in in_container(grafana, path).glob("*.json")) for path in paths] == [
        ["comparison.json", "gpu.json", "live.json", "trend.json"]
    ]


def test_every_variable_of_the_data_source_is_set(grafana: dict[str, Any]) -> None:
    [source] = (PROVISIONING / "datasources").glob("*.y*ml")
    asked = set(re.findall(r"\$\{?([A-Z_]+)", re.sub(r"#.*", "", source.read_text())))
    assert asked == {"INFLUXDB_URL", "INFLUXDB_BUCKET", "INFLUXDB_TOKEN"}
    assert all(grafana["environment"][name] for name in asked)


def test_it_opens_with_a_dashboard_that_is_there(grafana: dict[str, Any]) -> None:
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert in_container(grafana, home).is_file()
