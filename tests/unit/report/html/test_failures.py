"""Samples of what failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.report.html.failures import failures
from loadgen.report.html.tables import failures_table
from loadgen.store import RunDir


def journal(run: Path, *rows: dict[str, Any], name: str = "requests.jsonl") -> RunDir:
    run.mkdir(exist_ok=True)
    (run / name).write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in rows))
    return RunDir(run)


def failed(n: int, text: str = "no", kind: str = "http_500", **more: Any) -> dict[str, Any]:
    return {"engine": "e", "outcome": "failed", "error": kind, "error_text": text, "point_ns": n, **more}


def test_kinds_by_their_number(tmp_path: Path) -> None:
    fine = {"engine": "e", "outcome": "ok", "error_text": 'a text with "outcome":"failed" in it'}
    cut = {"engine": "e", "outcome": "cancelled", "point_ns": 9}
    found = failures(journal(tmp_path, fine, failed(1, kind="reset"), cut, *(failed(n) for n in (3, 4))))
    assert [(f.engine, f.kind, f.count) for f in found] == [
        ("e", "http_500", 2),
        ("e", "reset", 1),
        ("e", "cancelled", 1),
    ]


def test_samples_that_differ_come_before_more_of_the_same(tmp_path: Path) -> None:
    rows = [failed(n, "the same") for n in range(100)] + [failed(100 + n, f"other {n}") for n in range(9)]
    (found,) = failures(journal(tmp_path, *rows))
    assert found.count == 109
    assert [r["error_text"] for r in found.rows] == ["the same", "the same", "other 0", "other 1", "other 2"]


def test_a_workers_copy_is_no_second_failure(tmp_path: Path) -> None:
    journal(tmp_path, failed(1, worker="a"), failed(2, worker="a"))
    run = journal(tmp_path, failed(2, worker="a"), failed(2, worker="b"), name="requests-a.jsonl")
    assert failures(run)[0].count == 3


def test_lines_that_are_no_json_and_spaces_in_those_that_are(tmp_path: Path) -> None:
    run = journal(tmp_path, failed(1))
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine": "e", "outcome": "failed", "error": "http_500"}\n{"outcome":"failed", torn')
    assert failures(run)[0].count == 2


def test_they_are_shown_as_text(tmp_path: Path) -> None:
    found = failures(journal(tmp_path, failed(1, "<img src=x onerror=alert(1)>", "<b>", response_id="<i>")))
    shown = str(failures_table(found, 0, {"e": 0}))
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    assert "<code>&lt;b&gt;</code>" in shown


@pytest.mark.parametrize(("kinds", "more"), [(20, False), (23, True)])
def test_very_many_kinds(tmp_path: Path, kinds: int, more: bool) -> None:
    found = failures(journal(tmp_path, *(failed(n, kind=f"kind_{n}") for n in range(kinds))))
    assert ("3 further kinds" in str(failures_table(found, 0, {}))) == more
