"""What is said when the result of a run cannot be kept."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from loadgen.store import RunDir, StoreError
from loadgen.users.result import show_result
from tests.unit.metrics.rows import FIVE
from tests.unit.report.made import make_run


def test_a_summary_that_finds_no_room_is_a_sentence(
    tmp_path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(run: RunDir) -> None:
        raise StoreError("summary.json cannot be written: No space left on device")

    monkeypatch.setattr("loadgen.report.summary.write_summary", full)
    caplog.set_level(logging.INFO, "loadgen")
    show_result(SimpleNamespace(dir=make_run(tmp_path, FIVE)))  # type: ignore[arg-type]
    assert "No space left on device; when that is mended: loadgen summary" in caplog.text
    assert "Traceback" not in caplog.text
