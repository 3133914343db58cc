"""`loadgen report`: where it writes, what it says of a person's mistake, and its exit code."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import main
from loadgen.store import Suite
from tests.support.madeups import made_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def small(runs_dir: str, **more: Any) -> Any:
    return made_run(Path(runs_dir), blocks=1, requests=16, gpus=0, **more)


def test_into_the_runs_own_directory(capsys: Capture) -> None:
    run = small("runs")
    assert main(["report"]) == 0
    page = run.path / "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "report.html (4.9 MB)" in capsys.readouterr().out
    assert page.stat().st_size < 6e6


def test_a_suite_and_a_file_of_ones_own(capsys: Capture) -> None:
    suite = Suite.create(Path("runs"))
    for scenario in ("single_user", "concurrency"):
        small("runs", scenario=scenario, suite=suite)
    assert main(["report", suite.name, "-o", "there.html"]) == 0
    text = Path("there.html").read_text(encoding="utf-8")
    assert text.count('class="run"') == 2


def test_two_runs_on_one_page_each_once() -> None:
    a, b = small("runs"), small("runs")
    assert main(["report", a.name, b.name, str(a.path)]) == 0
    assert Path("loadgen-report.html").read_text(encoding="utf-8").count('class="run"') == 2


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["nope"], "there is no run 'nope'"),
        (["latest", "-o", "nowhere/x.html"], "nowhere/x.html cannot be written"),
        (["latest", "-o", "runs"], "runs is a directory"),
        (["latest", "--baseline", "other"], "has no engine 'other'; it has vllm, llamacpp"),
        (["empty"], "there is no run to report on yet"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_1(capsys: Capture, argv: list[str], says: str) -> None:
    Suite.create(Path("runs"), "empty").path.rename("empty")
    small("runs")
    assert main(["report", *argv]) == 1
    err = capsys.readouterr().err
    assert err.startswith("loadgen report: ")
    assert says in err
    assert err.count("\n") == 1


def test_without_plotly(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    small("runs")
    real = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.startswith("plotly"):
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert main(["report"]) == 1
    assert "pip install 'loadgen[report]'" in capsys.readouterr().err


def test_objectives(capsys: Capture) -> None:
    run = made_run(Path("runs"), blocks=6, requests=32, gpus=0)  # TTFT 180 and 95 ms
    assert main(["report", "--slo", "ttft_p95<130ms", "--slo", "goodput>0.9,ttft<130ms"]) == 0
    text = (run.path / "report.html").read_text(encoding="utf-8")
    assert (
        text.count("ttft_p95&lt;130ms") == 2
    )  # on the first screen, since vllm does not keep it; in the table
    assert "goodput&gt;0.9" in text
    assert main(["report", "--slo", "nope<1"]) == 2
    assert "there is no figure 'nope'" in capsys.readouterr().err


def test_a_link_stays_one_and_a_device_is_no_file_to_replace(capsys: Capture) -> None:
    small("runs")
    Path("real.html").write_text("old")
    Path("link.html").symlink_to("real.html")
    assert main(["report", "-o", "link.html"]) == 0
    assert Path("link.html").is_symlink()
    assert Path("real.html").read_text(encoding="utf-8").startswith("<!doctype")
    assert main(["report", "-o", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    assert main(["report", "-o", "/dev/full"]) == 1
    assert capsys.readouterr().err.endswith("loadgen report: /dev/full: No space left on device\n")
