"""`loadgen` itself: what every subcommand has in common."""

from __future__ import annotations

import importlib

import pytest

from loadgen import cli, exitcodes


def test_ctrl_c_while_modules_are_imported_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert cli.main(["engines"]) == exitcodes.INTERRUPTED == 130
