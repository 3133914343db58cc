"""The dashboards' JSON: as the source says, complete, and of names that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grafana import build
from grafana.dashboards import DASHBOARDS
from grafana.dashboards.model import PLACES, WIDTH
from loadgen.sinks.schema import BY_NAME

ROOT = Path(__file__).resolve().parents[3]
MODELS = {path.stem: json.loads(path.read_text()) for path in sorted(build.FOLDER.glob("*.json"))}
KEYWORD = re.compile(r"\bFROM\s+(\"(\w+)\"|/\^\((.+?)\)\$/|\()")
ALIAS = re.compile(r'\bAS "[^"]+"')


def panels(model):
    for panel in model["panels"]:
        yield panel
        yield from panel.get("panels", [])


def shown(model):
    return [p for p in panels(model) if p["type"] not in ("row", "text")]


def every_query(model):
    yield from (target["query"] for panel in shown(model) for target in panel["targets"])
    yield from (v["query"]["query"] for v in model["templating"]["list"] if v["type"] == "query")
    yield from (a["target"]["query"] for a in model["annotations"]["list"] if not a.get("builtIn"))


QUERIES = sorted({(name, query) for name, model in MODELS.items() for query in every_query(model)})


def test_the_files_are_what_the_source_says():
    assert build.stale() == [], "run python grafana/build.py"
    assert list(MODELS) == sorted(DASHBOARDS)


@pytest.mark.parametrize("name", MODELS)
def test_every_panel_says_what_it_answers_and_what_to_do_when_it_is_empty(name):
    for panel in shown(MODELS[name]):
        assert len(panel["description"]) > 4, panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["noValue"], panel["title"]
        assert defaults["unit"], panel["title"]
        assert panel["targets"], panel["title"]


@pytest.mark.parametrize("name", MODELS)
def test_panels_have_numbers_of_their_own_and_do_not_lie_on_each_other(name):
    model = MODELS[name]
    numbers = [p["id"] for p in panels(model)]
    assert len(set(numbers)) == len(numbers)
    for group in [model["panels"], *(p["panels"] for p in model["panels"] if p.get("panels"))]:
        taken = set()
        for p in group:
            at = p["gridPos"]
            assert at["x"] + at["w"] <= WIDTH
            cells = {
                (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
            }
            assert not cells & taken, p["title"]
            taken |= cells


def test_events_are_not_marked_where_time_is_moved():
    model = MODELS["comparison"]
    titles = {p["id"]: p["title"] for p in panels(model)}
    for marks in model["annotations"]["list"]:
        if not marks.get("builtIn"):
            assert marks["filter"]["exclude"] is True
            assert [titles[i] for i in marks["filter"]["ids"]] == [
                f"{what} since the turn began" for what in ("Throughput", "TTFT", "In flight")
            ]


def test_links_lead_to_dashboards_that_exist():
    uids = {model["uid"] for model in MODELS.values()}
    assert uids == {uid for uid, _, _ in PLACES}
    text = json.dumps(list(MODELS.values()))
    assert set(re.findall(r"/d/([\w-]+)", text)) == uids


def test_panels_use_the_provisioned_data_source():
    provisioned = (ROOT / "grafana/provisioning/datasources/influxdb.yaml").read_text()
    used = {t["datasource"]["uid"] for m in MODELS.values() for p in shown(m) for t in p["targets"]}
    assert [f"uid: {uid}" in provisioned for uid in used] == [True]
    assert "${INFLUXDB_TOKEN}" in provisioned, "the token comes from Grafana's environment"
    assert "version: InfluxQL" in provisioned


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_queries_keep_to_what_every_influxdb_answers(name, query):
    assert "$timeFilter" in query, "InfluxDB 3 Core looks at a limited number of files"
    assert ";" not in query, "Grafana takes the first statement's result alone"
    assert not re.search(r"\b(SLIMIT|SOFFSET|SAMPLE|HOLT_WINTERS|SHOW SERIES|INTO)\b", query, re.I)
    for variable in re.findall(r"\$(run|scenario|engine|host|gpu)\b", query):
        assert f"=~ /^${variable}$/" in query, "several values may be chosen"
    if "time($__interval)" in query:
        assert "fill(null)" in query or "fill(none)" in query


@pytest.mark.parametrize(("name", "query"), QUERIES)
def test_queries_name_measurements_tags_and_fields_of_the_schema(name, query):
    sources = {n for _, one, some in KEYWORD.findall(query) for n in (one, *some.split("|")) if n}
    assert sources <= BY_NAME.keys()
    known = {part.name for n in sources for part in (*BY_NAME[n].tags, *BY_NAME[n].fields)}
    aliases = set(re.findall(r'\bAS "([^"]+)"', query))
    named = set(re.findall(r'"([^"]+)"', ALIAS.sub("", query))) - sources
    unknown = named - known - aliases
    assert not unknown


def test_a_check_of_the_files_finds_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    assert len(build.stale()) == len(DASHBOARDS), "none is there"
    for path, body in build.files().items():
        path.write_text(body)
    (tmp_path / "live.json").write_text("{}\n")
    (tmp_path / "old.json").write_text("{}\n")
    assert {p.name for p in build.stale()} == {"live.json", "old.json"}
