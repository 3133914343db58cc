"""The first screen: the words of the verdict, and the picture beside it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.compare.result import Row
from loadgen.compare.runs import compare_run
from loadgen.report.html.comparison import gain
from loadgen.report.html.forest import forest
from loadgen.report.html.opening import headline, opening
from loadgen.report.html.results import Results, results_of
from loadgen.report.html.words import colours_of
from loadgen.store import RunDir, Suite
from loadgen.sweep import Plan
from loadgen.sweep.figures import step_figures
from loadgen.sweep.record import StepRecord, Sweep
from tests.support.madeups import FAST, SLOW, Made, made_run, made_suite
from tests.unit.report.html.test_markup import Reader


def words(target: RunDir | Suite | Results) -> str:
    """The first screen as it is read: what is in lines of its own is in words of its own."""
    results = target if isinstance(target, Results) else results_of([target])
    shown = opening(results, colours_of(results.engines))
    page = re.sub(r"<(h2|h3|p|li|td|th|small|dt|dd|table)\b", r" <\1", shown)
    return " ".join("".join(Reader(page).texts).split())


def row(ratio: float, low: float | None, high: float | None, *, higher: bool = True, **more: Any) -> Row:
    fields: dict[str, Any] = dict.fromkeys((f.name for f in dataclasses.fields(Row)), None)
    fields |= {
        "answer": "better",
        "better": "a" if (ratio > 1) == higher else "b",
        "higher_is_better": higher,
    }
    fields |= {"figure": "f", "title": "speed", "statistic": "mean", "engine": "a", "baseline": "b"}
    fields |= {"ratio": ratio, "low": low, "high": high, "blocks": 8, "sentence": "so it is"}
    return Row(**fields | more)


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
def test_a_ratios_place_on_a_scale_that_ends_at_two(made: Row, place: float) -> None:
    shown = forest([("", [("speed", made)])], 1.05, {"a": 0, "b": 1})
    assert places(str(shown), "dot") == [place]


def test_a_factor_is_turned_to_the_side_of_the_better() -> None:
    assert gain(row(2.0, 1.6, 2.5)) == (2.0, 1.6, 2.5)
    assert gain(row(0.5, 0.4, 0.625, higher=False)) == (2.0, 1.6, 2.5)
    assert gain(row(0.5, None, None, higher=False)) == (2.0, None, None)


def test_a_void_run_has_no_better_engine(tmp_path: Path) -> None:
    said = words(made_run(tmp_path, held_back=["hw_thermal_slowdown"]))
    assert "No verdict: this run is void." in said
    assert "hw_thermal_slowdown" in said
    assert "better than" not in said
    picture = str(forest([("", [("speed", row(2, 1.9, 2.1))])], 1.05, {}, void=True))
    assert "dot undecided" in picture
    assert "so it is" not in picture


def test_the_answer_comes_first(tmp_path: Path) -> None:
    said = words(made_run(tmp_path))
    assert said.startswith("llamacpp is better than vllm in throughput, TTFT and end-to-end time.")
    assert re.search(
        r"llamacpp has the lower TTFT: that of vllm is 1\.[89]\d times as high \(1\.\d\d to ", said
    )
    assert "valid Nothing speaks against these figures." in said


def test_the_numbers_are_those_of_the_comparison(tmp_path: Path) -> None:
    run = made_run(tmp_path)
    shown = compare_run(run).row("llamacpp", "ttft_ms")
    assert shown is not None
    assert f"{shown.ratio:.3f} {shown.low:.3f} to {shown.high:.3f}" in words(run)


def test_each_ahead_in_something(tmp_path: Path) -> None:
    said = words(made_run(tmp_path, [Made("a", 300, 10), Made("b", 100, 20)], users=1, requests=8, gpus=0))
    assert said.startswith("b is ahead in TTFT, a is ahead in decode speed.")


def test_too_few_blocks_decide_nothing(tmp_path: Path) -> None:
    said = words(made_run(tmp_path, blocks=2))
    assert "Which is better can't be decided. 6 complete blocks might decide; there are 2." in said


def test_equal_engines(tmp_path: Path) -> None:
    engines = [Made("a", 100, 10), Made("b", 100, 10)]
    said = words(made_run(tmp_path, engines, users=1, requests=12, blocks=16, gpus=0))
    assert said.startswith("No difference that matters between a and b.")


def test_simulated_engines_are_called_so_first(tmp_path: Path) -> None:
    engines = [Made("a", 100, 10, simulated=True), Made("b", 200, 10)]
    said = words(made_run(tmp_path, engines))
    assert said.startswith("Simulated engines (a): this says nothing about real servers.")


def test_one_engine_is_not_compared(tmp_path: Path) -> None:
    said = words(made_run(tmp_path, [FAST], gpus=0))
    assert "vllm was measured alone: nothing is compared." in said
    assert "ms p50, p95" in said


def test_a_suite_has_a_line_a_scenario(tmp_path: Path) -> None:
    results = results_of([made_suite(tmp_path, blocks=6)])
    said = words(results)
    assert said.startswith("Each is better at something: it depends on the use.")
    assert "one user, short prompt: llamacpp is better than vllm in TTFT and decode speed." in said
    assert "one user, long prompt: llamacpp is ahead in decode speed, vllm is ahead in TTFT." in said
    assert headline(results)[0] == "vllm and llamacpp: 3 workloads"


def test_a_suite_that_amounts_to_a_sweep_is_one_picture_of_its_throughput(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    for users in (4, 1, 2):
        one = {"scenario": f"concurrency_{users}", "users": users, "suite": suite}
        made_run(tmp_path, (FAST, SLOW), requests=4, blocks=6, gpus=0, **one)
    results = results_of([suite])
    assert headline(results)[0] == "vllm and llamacpp: concurrency, 1 to 4 users"
    said = words(results)
    assert said.index("concurrency: throughput") < said.rindex("1 user ") < said.rindex("2 users ")


def test_a_sweep_says_what_it_found(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path, "sweep")
    sweep = Sweep("sweep", "concurrency", Plan((1, 2, 4)), engines=dict.fromkeys(("vllm", "llamacpp"), ""))
    for users in (1, 2, 4):
        one = {"scenario": f"concurrency_{users}", "users": users, "suite": suite}
        run = made_run(tmp_path, (FAST, SLOW), requests=80, blocks=2, gpus=0, **one)
        sweep.steps.append(StepRecord(users, run.name, step_figures(run)))
    sweep.write(suite.path)
    results = results_of([suite])
    said = words(results)
    assert said.startswith("What the sweep found vllm: no knee yet: throughput still rises")
    (loads,) = results.loads()
    assert [d.load for d in loads.steps] == [1, 2, 4]
    assert loads.sweep is not None
    assert headline(results)[0] == "vllm and llamacpp: concurrency, 1 to 4 users"


def test_two_runs_against_each_other(tmp_path: Path) -> None:
    before = made_run(tmp_path, [FAST], gpus=0)
    after = made_run(tmp_path, [Made("vllm", 90.0, 23.8)], gpus=0, seed=2)
    results = results_of([before, after])
    assert re.search(
        r"vllm \(B\) has the lower TTFT: that of vllm \(A\) is (1\.9|2\.0)\d times", words(results)
    )
    assert headline(results)[0] == "vllm: 16 users at once, two runs against each other"
    colours = colours_of(results.engines)
    assert colours["vllm"] == colours["vllm (A)"] != colours["vllm (B)"]


def test_another_baseline(tmp_path: Path) -> None:
    (one,) = results_of([made_run(tmp_path, gpus=0)], baseline="llamacpp").digests
    assert one.comparison is not None
    assert {r.baseline for r in one.comparison.rows} == {"llamacpp"}
