"""Runs a dashboard's queries as Grafana 13 would, against a real database.

Grafana's rules that matter here: the browser puts in the variables (a multi-value one becomes `(a|b)` with
the special characters of regular expressions escaped; a value that begins like a number is left as it is; All
becomes `allValue` as it stands), the back end puts in the macros and takes the first statement's result. Rows
of a table keep their nulls; an annotation with a null in a selected column is dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

Json = dict[str, Any]
ALL = "$__all"

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)(?::\w+)?\}")
_NUMBER = re.compile(r"\s*[-+]?(\d|\.\d|Infinity)")
_SPECIAL = re.compile(r"[\\^$*+?.()|\[\]{}/]")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))


@dataclass
class Answer:
    """What one query of a panel got: `series` as InfluxDB gave it, `error` where it refused."""

    panel: str
    ref: str
    query: str
    table: bool
    series: list[Json]
    error: str = ""

    @property
    def values(self) -> int:
        """How many figures or texts there are: nulls and times don't count."""
        return sum(
            value is not None
            for one in self.series
            for row in one["values"]
            for name, value in zip(one["columns"], row, strict=True)
            if name != "time"
        )

    @property
    def rows(self) -> list[Json]:
        """The rows of a table: tags and columns by name."""
        return [
            {**one.get("tags", {}), **dict(zip(one["columns"], row, strict=True))}
            for one in self.series
            for row in one["values"]
        ]


@dataclass
class Dashboard:
    """A dashboard on a database, with a time range in milliseconds, and what is chosen in its pickers."""

    model: Json
    url: str
    token: str
    database: str
    start_ms: int
    end_ms: int
    chosen: dict[str, str | list[str]] = field(default_factory=dict)
    found: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, bucket: Any, start_ms: int, end_ms: int, **chosen: str | list[str]
    ) -> Dashboard:
        """Load a dashboard and its pickers: what is not `chosen` is what Grafana would choose, the saved
        value, else the first that is found."""
        model = json.loads(path.read_text(encoding="utf-8"))
        made = cls(model, bucket.url, bucket.token, bucket.name, start_ms, end_ms)
        for variable in model["templating"]["list"]:
            made._load(variable, chosen.get(variable["name"]))
        return made

    def answers(self, interval_ms: int = 1000) -> Iterator[Answer]:
        """Every query of every panel."""
        for panel, target in _targets(self.model["panels"]):
            yield self._answer(panel["title"], target, interval_ms)

    def answer(self, panel: str, ref: str = "A", interval_ms: int = 1000) -> Answer:
        """One query of one panel."""
        for one, target in _targets(self.model["panels"]):
            if one["title"] == panel and target["refId"] == ref:
                return self._answer(panel, target, interval_ms)
        raise KeyError(f"{self.model['title']} has no panel {panel!r} with a query {ref}")

    def annotations(self) -> Iterator[Answer]:
        """Every query of an annotation, its rows with a null left out."""
        for one in self.model["annotations"]["list"]:
            if one.get("builtIn"):
                continue
            answer = self._answer(one["name"], {**one["target"], "resultFormat": "time_series"}, 1000)
            for series in answer.series:
                series["values"] = [row for row in series["values"] if None not in row]
            yield answer

    def interpolated(self, text: str, interval_ms: int = 1000) -> str:
        """The query as the database gets it."""
        return self._macros(_VARIABLE.sub(lambda m: self._put_in(m, text), text), interval_ms)

    def _load(self, variable: Json, chosen: str | list[str] | None) -> None:
        name = variable["name"]
        if variable["type"] == "query":
            answer = self._run(self.interpolated(variable["query"]["query"]))
            values = {row[-1] for series in answer[0] for row in series["values"]}
            self.found[name] = sorted(values, reverse=variable["sort"] == 2)
        else:
            self.found[name] = [option["value"] for option in variable["options"]]
        saved = variable.get("current", {}).get("value")
        value = chosen or saved or self.found[name][:1] or ""
        if not variable["multi"] and isinstance(value, list):
            value = value[0]
        self.chosen[name] = value

    def _put_in(self, match: re.Match[str], text: str) -> str:
        name = match[1] or match[2]
        if name not in self.chosen:
            return match[0]
        variable = next(v for v in self.model["templating"]["list"] if v["name"] == name)
        value = self.chosen[name]
        if value in (ALL, [ALL]):
            return str(variable["allValue"])
        if isinstance(value, list):
            return f"({'|'.join(map(_escaped, value))})"
        if _NUMBER.match(value):
            return value
        in_regex = re.search(rf"[=!]~\s*/[^/]*\${name}\b", text)
        return _escaped(value) if variable["multi"] or in_regex else value

    def _macros(self, query: str, interval_ms: int) -> str:
        unit, size = next((u, s) for u, s in _UNITS if interval_ms >= s)
        interval = f"{interval_ms // size}{unit}"
        between = f"time >= {self.start_ms}ms and time <= {self.end_ms}ms"
        for macro, value in (
            ("$timeFilter", between),
            ("$interval", interval),
            ("$__interval_ms", str(interval_ms)),
            ("$__interval", interval),
        ):
            query = query.replace(macro, value)
        return query

    def _answer(self, title: str, target: Mapping[str, Any], interval_ms: int) -> Answer:
        query = self.interpolated(target["query"], interval_ms)
        series, error = self._run(query)
        return Answer(title, target["refId"], query, target["resultFormat"] == "table", series, error)

    def _run(self, query: str) -> tuple[list[Json], str]:
        answer = requests.post(
            f"{self.url}/query",
            params={"db": self.database, "epoch": "ms"},
            data={"q": query},
            headers={"Authorization": f"Token {self.token}"},
            timeout=60,
        )
        body = answer.json()
        if answer.status_code != 200:
            return [], str(body)
        first = body["results"][0]
        return first.get("series", []), first.get("error", "")


def _targets(panels: list[Json]) -> Iterator[tuple[Json, Json]]:
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel, target
        yield from _targets(panel.get("panels", []))


def _escaped(value: str) -> str:
    return _SPECIAL.sub(lambda m: "\\" + m[0], value)
