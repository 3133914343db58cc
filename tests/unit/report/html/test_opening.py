"""The first screen: the words of the verdict, and the picture beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.report.html.comparison import gain, main_rows
from loadgen.report.html.digest import Digest, digest
from loadgen.report.html.forest import forest
from loadgen.report.html.opening import headline, opening
from loadgen.report.html.words import colours_of
from loadgen.store import Suite
from tests.support.madeups import FAST, SLOW, Made, made_run, made_suite
from tests.unit.report.html.test_markup import Reader


def words(digests: list[Digest]) -> str:
    colours = colours_of(name for d in digests for name in d.summary.engines)
    return " ".join(" ".join(Reader(opening(digests, colours)).texts).split())


def row(ratio: float, low: float, high: float, *, higher: bool = True, **more: Any) -> dict[str, Any]:
    answer = {"answer": "better", "better": "a" if (ratio > 1) == higher else "b"}
    names = {"figure": "f", "title": "speed", "statistic": "mean", "engine": "a", "baseline": "b"}
    numbers = {"ratio": ratio, "low": low, "high": high, "blocks": 8, "needed": None, "sentence": "so it is"}
    return {**names, **numbers, **answer, "higher_is_better": higher, **more}


def places(page: str, kind: str) -> list[float]:
    return [float(x) for x in re.findall(rf'class="{kind}[^"]*" style="left:([\d.]+)%', page)]


@pytest.mark.parametrize(
    ("made", "place"),
    [
        (row(2.0, 2.0, 2.0), 100.0),
        (row(0.5, 0.5, 0.5), 0.0),
        (row(0.5, 0.5, 0.5, higher=False), 100.0),
        (row(2**0.5, 1.2, 2.0), 75.0),
        (row(1.0, 0.9, 2.0), 50.0),
    ],
)
def test_a_ratios_place_on_a_scale_that_ends_at_two(made: dict[str, Any], place: float) -> None:
    shown = forest([("", [("speed", made)])], 1.05, {"a": 0, "b": 1})
    assert places(str(shown), "dot") == [place]


def test_a_factor_is_turned_to_the_side_of_the_better() -> None:
    assert gain(row(2.0, 1.6, 2.5)) == (2.0, 1.6, 2.5)
    assert gain(row(0.5, 0.4, 0.625, higher=False)) == (2.0, 1.6, 2.5)
    assert gain(row(0.5, None, None, higher=False)) == (2.0, None, None)  # type: ignore[arg-type]


def test_a_void_run_has_no_better_engine(tmp_path: Path) -> None:
    one = digest(made_run(tmp_path, held_back=["hw_thermal_slowdown"]))
    said = words([one])
    assert "No verdict: this run is void." in said
    assert "hw_thermal_slowdown" in said
    assert "engine / " not in said
    picture = str(forest([("", [("speed", row(2, 1.9, 2.1))])], 1.05, {}, void=True))
    assert "dot undecided" in picture
    assert "so it is" not in picture


def test_the_answer_comes_first(tmp_path: Path) -> None:
    said = words([digest(made_run(tmp_path))])
    assert re.search(
        r"llamacpp has the lower TTFT: that of vllm is 1\.[89]\d times as high \(1\.\d\d to ", said
    )
    assert "valid Nothing speaks against these figures." in said


def test_which_rows_say_most() -> None:
    rows = [
        row(2, 1.9, 2.1, figure=f) for f in ("joules_per_output_token", "e2e_ms", "ttft_ms", "headers_ms")
    ]
    rows += [
        row(2, 1.9, 2.1, figure="ttft_ms", statistic="p99"),
        row(2, 1, 3, figure="throughput_tokens_per_s"),
    ]
    comparison = {"rows": rows, "engines": ["b", "a"], "baseline": "b"}
    assert [r["figure"] for r in main_rows(comparison, 1)] == ["ttft_ms", "e2e_ms", "joules_per_output_token"]
    assert main_rows(comparison, 16)[0]["figure"] == "throughput_tokens_per_s"
    assert all(r["statistic"] == "mean" for r in main_rows(comparison, 16))


def test_too_few_blocks_decide_nothing(tmp_path: Path) -> None:
    said = words([digest(made_run(tmp_path, blocks=2))])
    assert "Which is better can't be decided. 6 complete blocks might decide; there are 2." in said


def test_simulated_engines_are_called_so_first(tmp_path: Path) -> None:
    engines = [Made("a", 100, 10, simulated=True), Made("b", 200, 10)]
    assert words([digest(made_run(tmp_path, engines))]).startswith(
        "Simulated engines (a): this says nothing about real servers."
    )


def test_one_engine_is_not_compared(tmp_path: Path) -> None:
    one = digest(made_run(tmp_path, [FAST], gpus=0))
    assert one.comparison is None
    said = words([one])
    assert "vllm was measured alone: nothing is compared." in said
    assert "ms p50, p95" in said


def test_a_suite_has_a_line_a_scenario(tmp_path: Path) -> None:
    digests = [digest(run) for run in made_suite(tmp_path, blocks=6).runs()]
    said = words(digests)
    assert "one user, short prompt: llamacpp has the lower TTFT" in said
    assert "one user, long prompt: vllm has the lower TTFT" in said
    assert "16 users at once: vllm has the higher throughput" in said
    assert headline(digests)[0] == "vllm and llamacpp: 3 workloads"


def test_a_sweep_is_one_picture_of_its_throughput(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    for users in (4, 1, 2):
        made_run(
            tmp_path,
            (FAST, SLOW),
            scenario=f"concurrency_{users}",
            users=users,
            requests=4,
            blocks=6,
            gpus=0,
            suite=suite,
        )
    digests = [digest(run) for run in suite.runs()]
    assert headline(digests)[0] == "vllm and llamacpp: concurrency, 1 to 4 users"
    said = words(digests)
    assert said.index("concurrency: throughput") < said.index("1 user ") < said.index("2 users ")


def test_another_baseline(tmp_path: Path) -> None:
    comparison = digest(made_run(tmp_path, gpus=0), baseline="llamacpp").comparison
    assert comparison is not None
    assert {r["baseline"] for r in comparison["rows"]} == {"llamacpp"}
