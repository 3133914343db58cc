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


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (["runs", "prune", "--scenario", "", "--keep", "0", "--yes"], "--scenario"),
        (["runs", "--model="], "--model"),
        (["check", "latest", "--slo", "interactive", "--scenario", " "], "--scenario"),
        (["compare", "latest", "--csv", ""], "--csv"),
        (["sweep", "--users", ""], "--users"),
        (["sweep", "--show", ""], "--show"),
        (["summary", "--runs-dir", ""], "--runs-dir"),
        (["report", ""], "an argument"),
    ],
)
def test_an_empty_value_is_refused(argv: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It comes from a variable that is not set: prune would remove all runs instead of one scenario's."""
    assert cli.main(argv) == (exitcodes.CANNOT_CHECK if argv[0] == "check" else exitcodes.USAGE)
    captured = capsys.readouterr()
    assert captured.err == f"loadgen {argv[0]}: {what} is empty: is a variable not set?\n"
    assert captured.out == ""
