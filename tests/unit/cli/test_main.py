"""`loadgen` itself: what every subcommand has in common."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen import cli, exitcodes
from tests.unit.slo.made import slow_run


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


@pytest.mark.parametrize(
    ("argv", "answer", "on_a_full_disk"),
    [
        (["check", "--slo", "ttft_p95<50ms"], exitcodes.NOT_MET, exitcodes.CANNOT_CHECK),
        (["check", "--slo", "ttft_p99<500ms", "--json"], exitcodes.NOT_DECIDABLE, exitcodes.CANNOT_CHECK),
        (["summary"], exitcodes.OK, exitcodes.FAILED),
        (["runs"], exitcodes.OK, exitcodes.FAILED),
    ],
)
def test_a_closed_pipe_and_a_full_disk(
    argv: list[str], answer: int, on_a_full_disk: int, tmp_path: Path
) -> None:
    """`loadgen check | head` answers all the same, and what can't be printed is no answer."""
    slow_run(tmp_path / "runs", [[100.0] * 80])
    command = [sys.executable, "-m", "loadgen.cli", *argv]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    read, write = os.pipe()
    os.close(read)
    for out, code, says in (
        (write, answer, b""),
        (os.open("/dev/full", os.O_WRONLY), on_a_full_disk, b"full"),
    ):
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, cwd=tmp_path, env=env, timeout=60, check=False
        )
        os.close(out)
        assert done.returncode == code
        assert done.stderr.count(b"\n") == (1 if says else 0)
        assert b"No space left" in done.stderr or not says
