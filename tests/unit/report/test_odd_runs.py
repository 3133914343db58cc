"""Whatever stands in a run's files, reading it ends in figures or in one sentence."""

from __future__ import annotations

import contextlib
import copy
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.cli import main
from loadgen.report.html import results_of
from loadgen.report.html.page import page
from loadgen.slo.objectives import parse_slo
from loadgen.store import RunDir, StoreError
from tests.support.madeups import made_run

BAD: tuple[Any, ...] = (None, -1, 1e308, "\x1b[31m\u202e" * 99, [1], {"a": 1})
SLO = parse_slo(["interactive", "failures<1%", "goodput>0.9", "throughput>1", "energy<9"])
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return made_run(tmp_path, blocks=2, users=1, requests=2, tokens=4)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for n in range(min(len(value), 1)):
            yield from places(value[n], (*at, n))


def spoilt(value: Any, at: tuple[Any, ...], bad: Any) -> Any:
    if not at:
        return bad
    value = copy.deepcopy(value)
    inner = value
    for step in at[:-1]:
        inner = inner[step]
    inner[at[-1]] = bad
    return value


def spoilt_ones(value: Any) -> Iterator[Any]:
    """The value with each of its places spoilt in two ways, in turn."""
    for n, at in enumerate(places(value)):
        for k in (n, n + 3):
            yield spoilt(value, at, BAD[k % len(BAD)])


def read(run: RunDir) -> None:
    """What summary, compare, check and report make of it."""
    with warnings.catch_warnings(), contextlib.suppress(StoreError):
        warnings.simplefilter("error")
        page(results_of([run], gpu_hour=2.0, slo=SLO), "")


def test_a_manifest_with_anything_in_any_place(run: RunDir) -> None:
    data = json.loads(run.manifest_path.read_text())
    for bad in spoilt_ones(data):
        run.manifest_path.write_text(json.dumps(bad))
        read(run)


@pytest.mark.parametrize("name", ["requests.jsonl", "events.jsonl", "gpu.jsonl"])
def test_a_row_with_anything_in_any_place(run: RunDir, name: str) -> None:
    path = run.path / name
    lines = path.read_bytes().splitlines()
    kinds = {str(orjson.loads(line).get("kind")): n for n, line in enumerate(lines)}
    for n in kinds.values():
        for bad in spoilt_ones(orjson.loads(lines[n])):
            changed = list(lines)
            changed[n] = json.dumps(bad).encode()
            path.write_bytes(b"\n".join(changed) + b"\n")
            read(run)


@pytest.mark.parametrize("command", ["summary", "compare", "report", "runs", "check"])
def test_nothing_of_it_reaches_the_terminal(run: RunDir, command: str, capsys: Capture) -> None:
    bad = "\x1b[31m\u202e"
    data = json.loads(run.manifest_path.read_text())
    data["settings"] = {k: bad if not isinstance(v, bool) else v for k, v in data["settings"].items()}
    data |= {"state": bad, "scenario": bad}
    data["engines"] = [{k: bad if isinstance(v, str) else v for k, v in e.items()} for e in data["engines"]]
    run.manifest_path.write_text(json.dumps(data))
    where = ["--runs-dir", str(run.path.parent)] + (["--slo", "interactive"] if command == "check" else [])
    main([command, *([] if command == "runs" else [run.name]), *where])
    shown = "".join(capsys.readouterr())
    assert shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
