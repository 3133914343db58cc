"""The whole manifest as tables: nested objects flattened to dotted names, lists of objects numbered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.report.html.markup import Html, tag
from loadgen.report.html.words import moment
from loadgen.report.plain import clean

FIRST = ("engines", "gpus", "settings", "prompts", "host", "packages")
LONGEST = 4000


def manifest_tables(manifest: Mapping[str, Any]) -> Html:
    """A table a part: the manifest's own values, then its objects and lists, the best known first."""
    plain = {k: v for k, v in manifest.items() if not isinstance(v, (Mapping, list))}
    parts = [_part("run", plain)]
    nested = [k for k in manifest if k not in plain]
    for key in sorted(nested, key=lambda k: (FIRST.index(k) if k in FIRST else len(FIRST), k)):
        parts.append(_part(key, manifest[key]))
    return tag("div", *parts, class_="manifest")


def _part(name: str, value: Any) -> Html:
    rows = [tag("tr", tag("th", key, scope="row"), tag("td", _value(key, v))) for key, v in flat(value)]
    if not rows:
        rows = [tag("tr", tag("td", "nothing"))]
    table = tag("div", tag("table", tag("tbody", *rows)), class_="scroll")
    return tag("details", tag("summary", name.replace("_", " ")), table)


def flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, plain value) of everything in a value of JSON.

    >>> list(flat({"a": {"b": 1, "c": []}, "d": [{"e": 2}, 3]}))
    [('a.b', 1), ('a.c', '[]'), ('d.0.e', 2), ('d.1', 3)]
    """
    if isinstance(value, Mapping):
        members = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, list) and any(isinstance(v, (Mapping, list)) for v in value):
        members = [(str(n), v) for n, v in enumerate(value)]
    elif isinstance(value, list) and value:
        yield name, ", ".join(clean(v, LONGEST) for v in value)
        return
    elif isinstance(value, list):
        yield name, "[]"
        return
    else:
        yield name, value
        return
    if not members:
        yield name, "{}"
    for key, member in members:
        yield from flat(member, f"{name}.{key}" if name else key)


def _value(key: str, value: Any) -> Html | str:
    if value is None:
        return tag("span", "none", class_="none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and key.endswith("_ns") and value > 10**15:
        return f"{value} ({moment(value)})"
    return clean(value, LONGEST)
