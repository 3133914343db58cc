"""A run's figures as a step of a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.slo import parse_slo
from loadgen.sweep.figures import point_of, step_figures
from loadgen.sweep.slo import judge_of, least_requests
from tests.unit.metrics.rows import row
from tests.unit.report.made import make_run

TURNS = [("a", 0, 0.0, 1.0, True), ("b", 1, 2.0, 3.0, True)]


def answers(engine: str, turn: int, at: float, ok: int, failed: int = 0, ttft_us: int = 100_000) -> list:
    same = {"engine": engine, "turn": turn, "phase": "measure", "clock": "kernel", "output_tokens": 10}
    good = [row(at, 1.0, event_us=[ttft_us, 1_000_000], **same) for _ in range(ok)]
    return good + [row(at, 1.0, outcome="failed", error="http_503", **same) for _ in range(failed)]


def test_an_engine_that_fails_voids_nothing_of_the_other(tmp_path: Path) -> None:
    rows = [*answers("a", 0, 0.0, ok=8, failed=8), *answers("b", 1, 2.0, ok=16)]
    run = make_run(tmp_path, rows, engines=[{"name": "a"}, {"name": "b"}], turns=TURNS)
    found = step_figures(run)
    a, b = (point_of(16, found[name]) for name in "ab")
    assert (a.failing, a.believed, a.usable) == (True, False, False)
    assert (b.failing, b.believed, b.usable) == (False, True, True)
    assert b.throughput == pytest.approx(160.0)
    assert found["a"]["failed_by_kind"] == {"http_503": 8}
    assert [f["check"] for f in found["a"]["findings"] if f["level"] == "void"] == ["failures"]
    assert found["b"]["ttft_ms"] == {"n": 16, "p50": 100.0, "p95": 100.0, "p99": 100.0}


@pytest.mark.parametrize(
    ("ok", "ttft_us", "answer"),
    [(80, 100_000, "met"), (80, 900_000, "not met"), (16, 100_000, "not decidable")],
)
def test_a_step_against_an_slo(tmp_path: Path, ok: int, ttft_us: int, answer: str) -> None:
    rows = answers("a", 0, 0.0, ok=ok, ttft_us=ttft_us)
    run = make_run(tmp_path, rows, engines=[{"name": "a"}], turns=TURNS[:1])
    figures = step_figures(run, judge_of(parse_slo(["ttft_p95<500ms", "failures<50%"])))["a"]
    assert figures["slo"] == point_of(ok, figures).slo == answer
    assert all(s.startswith("ttft_p95<500ms: ") for s in figures["slo_sentences"]) or answer == "met"
    assert len(figures["slo_sentences"]) == (2 if answer == "met" else 1), "what decided, and nothing else"


def test_a_void_step_decides_no_slo(tmp_path: Path) -> None:
    rows = answers("a", 0, 0.0, ok=80)
    run = make_run(tmp_path, rows, engines=[{"name": "a"}], turns=[("a", 0, 0.0, 1.0, False)])
    figures = step_figures(run, judge_of(parse_slo(["ttft_p95<500ms"])))["a"]
    assert (figures["validity"], figures["slo"]) == ("void", "not decidable")


@pytest.mark.parametrize(
    ("slo", "requests"),
    [
        (["ttft_p95<500ms"], 72),  # 0.95 ** 72 = 0.0249, and half of 5 % is 0.025
        (["ttft_p95<500ms", "tpot_p99<50ms"], 368),
        (["decode_p5>30"], 72),
        (["failures<1%"], 368),
        (["ttft<500ms", "goodput>95%"], 72),
        (["throughput>300"], 1),
        (["failures<=0"], 1),
    ],
)
def test_the_requests_that_an_slo_needs(slo: list[str], requests: int) -> None:
    assert least_requests(parse_slo(slo)) == requests
