"""The live page's cost stays far below its limit, and its memory is bounded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))


def test_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import live_page

    monkeypatch.setattr("sys.argv", ["locust"])
    monkeypatch.setattr(live_page, "RECORDS", 100)
    found = live_page.bench(updates=5, engines=4, gpus=4, hours=0.3)
    assert found["holds"], found
    assert 8 * 600 < found["opened_seconds"] <= found["buckets"] < 8 * 0.3 * 3600
    assert 0 < found["question_bytes"] < 10_000
