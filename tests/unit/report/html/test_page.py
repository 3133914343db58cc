"""The whole page: complete, alone in the world, and nobody's text is anything but text."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadgen.report.html import results_of
from loadgen.report.html.definitions import definitions
from loadgen.report.html.manifest import flat, manifest_tables
from loadgen.report.html.markup import script_hash
from loadgen.report.html.page import page
from loadgen.store import Suite
from tests.support.madeups import FAST, SLOW, Made, made_run
from tests.unit.report.html.test_markup import Reader

PLOTLY = "/* in place of plotly */"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


def made(tmp_path: Path, *engines: Made, **more: Any) -> str:
    return page(
        results_of([made_run(tmp_path, engines or (FAST, SLOW), blocks=2, requests=16, **more)]), PLOTLY
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> str:
    return made(tmp_path_factory.mktemp("run"))


def scripts(text: str) -> list[str]:
    """What a browser would run."""
    return re.findall(r"<script>(.*?)</script>", text, flags=re.S)


def charts(text: str) -> dict[str, dict[str, Any]]:
    found = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, flags=re.S)
    return {identity: json.loads(raw) for identity, raw in found}


def test_it_fetches_nothing(plain: str) -> None:
    for name, attributes in Reader(plain).tags:
        assert name not in ("link", "img", "iframe", "object", "embed", "form", "base")
        assert "src" not in attributes
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in plain.split("</style>")[0]


def test_it_runs_just_its_own_scripts(plain: str) -> None:
    run = scripts(plain)
    assert len(run) == 2
    (policy,) = (a["content"] or "" for _, a in Reader(plain).tags if a.get("http-equiv"))
    allowed = re.search(r"script-src ([^;]+);", policy)
    assert allowed
    assert allowed[1].split() == [script_hash(s) for s in run]
    assert policy.startswith("default-src 'none';")


def test_every_chart_has_its_place_and_its_data(plain: str) -> None:
    places = [a["data-from"] for _, a in Reader(plain).tags if "data-from" in a]
    assert [p.rpartition("-")[2] for p in places if p] == [
        "ttft_ms",
        "tpot_ms",
        "e2e_ms",
        "chunk_gap_ms",
        "time",
    ]
    assert list(charts(plain)) == places
    identities = [a["id"] for _, a in Reader(plain).tags if "id" in a]
    assert len(identities) == len(set(identities))


def test_a_curve_goes_from_nothing_to_all(plain: str) -> None:
    chart = next(c for name, c in charts(plain).items() if name.endswith("ttft_ms"))
    for trace in chart["data"]:
        assert (trace["y"][0], trace["y"][-1]) == (0, 1)
        assert trace["x"] == sorted(trace["x"])


def test_what_anybody_says_is_text(tmp_path: Path) -> None:
    evil = Made(
        EVIL, 100, 10, failing=3, error=EVIL, error_text=EVIL, model=EVIL, server=EVIL, facts={EVIL: EVIL}
    )
    text = made(tmp_path, evil, Made("b", 200, 10))
    read = Reader(text)
    assert {name for name, _ in read.tags} == {
        name for name, _ in Reader(made(tmp_path / "b", FAST, SLOW)).tags
    } | {"pre"}
    assert len(scripts(text)) == 2
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    for chart in charts(text).values():
        assert "<" not in "".join(str(t.get("name")) for t in chart["data"])


def test_the_whole_manifest_is_there(plain: str) -> None:
    shown = " ".join(Reader(plain).texts)
    for value in ("turn_requests", "a processor", "8192", "Qwen3-8B", "burst"):
        assert value in shown


def test_flat() -> None:
    value = {"a": {"b": 1, "c": []}, "d": [{"e": 2}, 3], "f": ["x", "y"], "g": {}}
    assert list(flat(value)) == [
        ("a.b", 1),
        ("a.c", "[]"),
        ("d.0.e", 2),
        ("d.1", 3),
        ("f", "x, y"),
        ("g", "{}"),
    ]


def test_values_of_a_manifest() -> None:
    shown = manifest_tables(
        {"start_ns": 1_796_000_000_000_000_000, "suite": None, "deep": {"on": True}, "notes": []}
    )
    assert "1796000000000000000 (2026-11-" in shown
    assert '<span class="none">none</span>' in shown
    assert "<td>yes</td>" in shown
    assert "<td>[]</td>" in shown


def test_every_figure_is_defined(plain: str) -> None:
    terms = re.findall(r"<dt>([^<]+)</dt>", definitions())
    for term in ("TTFT, ms", "TPOT, ms", "end to end, ms", "chunk gap, ms", "throughput", "turn, block"):
        assert term in terms


def test_one_of_many_runs_is_folded(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    for users in range(1, 7):
        made_run(
            tmp_path, scenario=f"concurrency_{users}", users=users, requests=6, blocks=1, gpus=0, suite=suite
        )
    text = page(results_of([suite]), PLOTLY)
    assert text.count('class="run folded"') == 6
    assert "Latency against throughput: concurrency" in text
    curve = charts(text)["load-0-0"]
    assert [t["text"] for t in curve["data"]] == [["1", "2", "3", "4", "5", "6"]] * 2


def test_a_run_with_next_to_nothing(tmp_path: Path) -> None:
    run = made_run(tmp_path, blocks=1)
    run.journal_path.write_bytes(b"")
    run.gpu_path.unlink()
    run.events_path.unlink()
    text = page(results_of([run]), PLOTLY)
    assert "there is no events.jsonl" in text
    run.manifest_path.unlink()
    assert "No engine was measured." in page(results_of([run]), PLOTLY)


def test_a_killed_run(tmp_path: Path) -> None:
    run = made_run(tmp_path, state="running", blocks=2)
    lines = run.events_path.read_bytes().splitlines(keepends=True)
    run.events_path.write_bytes(b"".join(lines[:-2]))
    assert "interrupted" in page(results_of([run]), PLOTLY)


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    run = made_run(tmp_path, blocks=2)
    text = page(results_of([run]), PLOTLY)
    copy = shutil.copytree(run.path, tmp_path / "elsewhere" / run.path.name)
    assert page(results_of([type(run)(copy)]), PLOTLY) == text
