"""What a run shows of its objectives."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadgen.report.load import load_run
from loadgen.slo import MET, NOT_DECIDABLE, NOT_MET, Judgement, judge_engine, overall, parse_slo
from tests.unit.metrics.rows import row
from tests.unit.report.made import make_run, watched
from tests.unit.slo.made import request, slow_run

QUICK, SLOW = 100.0, 900.0


def judged(tmp_path: Path, turns: list[list[float]], *texts: str) -> list[Judgement]:
    data = load_run(slow_run(tmp_path, turns))
    return judge_engine(parse_slo(texts), data.engines["e"])


@pytest.mark.parametrize(
    ("slow", "of", "text", "answer"),
    [
        (0, 100, "ttft_p95<500ms", MET),
        (0, 72, "ttft_p95<500ms", MET),
        (0, 71, "ttft_p95<500ms", NOT_DECIDABLE),  # even the slowest of 71 may be below the 95th percentile
        (3, 100, "ttft_p95<500ms", NOT_DECIDABLE),
        (9, 100, "ttft_p95<500ms", NOT_DECIDABLE),
        (12, 100, "ttft_p95<500ms", NOT_MET),
        (1, 1, "ttft_p95<500ms", NOT_DECIDABLE),
        (2, 2, "ttft_p95<500ms", NOT_MET),  # both above it by chance: 0.05^2
        (0, 100, "ttft_p99<=500ms", NOT_DECIDABLE),
        (0, 368, "ttft_p99<=500ms", MET),
        (0, 100, "goodput>0.9,ttft<500ms", MET),
        (12, 100, "goodput>0.95,ttft<500ms", NOT_MET),
        (5, 100, "goodput>0.95,ttft<500ms", NOT_DECIDABLE),
        (0, 100, "failures<5%", MET),
        (0, 100, "failures<1%", NOT_DECIDABLE),
        (0, 100, "failures<=0", MET),
        (0, 100, "goodput>=1,ttft<500ms", MET),
        (1, 100, "goodput>=1,ttft<500ms", NOT_MET),
        (0, 100, "decode_p5>50", MET),
        (0, 100, "decode_p5>200", NOT_MET),
        (0, 100, "ttfa_p95<1s", NOT_DECIDABLE),
        (0, 100, "goodput>0.9,ttfa<1s", NOT_DECIDABLE),
        (0, 100, "energy<1", NOT_DECIDABLE),
        (0, 100, "throughput>5", NOT_DECIDABLE),  # of one turn nobody knows how much they differ
    ],
)
def test_one_turn(tmp_path: Path, slow: int, of: int, text: str, answer: str) -> None:
    (one,) = judged(tmp_path, [[SLOW] * slow + [QUICK] * (of - slow)], text)
    assert (one.answer, overall([one])) == (answer, answer)
    assert one.sentence


def test_turns_that_differ_decide_less_than_their_requests_would(tmp_path: Path) -> None:
    even = [[SLOW] * 2 + [QUICK] * 98 for _ in range(4)]
    (one,) = judged(tmp_path / "a", even, "ttft_p95<500ms")
    assert (one.answer, one.n, one.value) == (MET, 400, QUICK)
    uneven = [[SLOW] * 8 + [QUICK] * 92, *[[QUICK] * 100] * 3]
    (one,) = judged(tmp_path / "b", uneven, "ttft_p95<500ms")
    assert (one.answer, one.value) == (NOT_DECIDABLE, QUICK)
    assert one.needed is not None
    assert one.needed > 400


def test_figures_of_turns(tmp_path: Path) -> None:
    """A request of 10 tokens a second; turns of different length and equal rates."""
    made = judged(
        tmp_path,
        [[QUICK] * 10, [QUICK] * 20, [SLOW] * 10],
        "throughput>9",
        "throughput>11",
        "requests>0.9",
        "goodput>0.5/s,ttft<500ms",
        "goodput>0.9/s",
        "ttft_mean<2s",
    )
    assert [(j.objective.text, j.answer) for j in made] == [
        ("throughput>9", MET),
        ("throughput>11", NOT_MET),
        ("requests>0.9", MET),
        ("goodput>0.5/s", NOT_DECIDABLE),
        ("goodput>0.9/s", NOT_DECIDABLE),
        ("ttft_mean<2s", NOT_DECIDABLE),
    ]
    assert [j.value for j in made] == pytest.approx([10, 10, 1, 0.75, 0.75, 300])
    assert {(j.n, j.of) for j in made} == {(3, "turn")}


def test_energy(tmp_path: Path) -> None:
    """400 W for 12 s, in which 12 requests have 10 tokens each: 40 J a token, in each turn."""
    rows = [request(n, 0, QUICK) for n in range(12)]
    run = watched(make_run(tmp_path, rows, turns=[("e", 0, 0, 12, True)]))
    (one,) = judge_engine(parse_slo(["energy<50"]), load_run(run).engines["e"])
    assert one.value == pytest.approx(40)
    assert (one.answer, one.why) == (NOT_DECIDABLE, "too few turns for an interval")


def test_only_whole_turns_and_measured_requests_count(tmp_path: Path) -> None:
    rows = [request(n, 0, QUICK) for n in range(80)]
    rows += [request(80 + n, 1, SLOW) for n in range(40)]
    rows += [request(130 + n, 0, SLOW, phase="warmup") for n in range(40)]
    rows += [row(3, 1, engine="e", turn=0, outcome="failed", error="http_500")]
    run = make_run(tmp_path, rows, turns=[("e", 0, 0, 80, True), ("e", 1, 80, 120, False)])
    ttft, failures = judge_engine(parse_slo(["ttft_p95<500ms,failures<=0"]), load_run(run).engines["e"])
    assert (ttft.answer, ttft.n) == (MET, 80)
    assert (failures.answer, failures.n, failures.value) == (NOT_MET, 81, pytest.approx(1 / 81))


def test_nothing_decides_nothing(tmp_path: Path) -> None:
    run = make_run(tmp_path, [], turns=[])
    made = judge_engine(
        parse_slo(["ttft_p95<1s,throughput>1,failures<1%,goodput>0.9"]), load_run(run).engines["e"]
    )
    assert {j.answer for j in made} == {NOT_DECIDABLE}
    assert all(j.why == j.sentence and j.value is None for j in made)
    assert overall([]) == NOT_DECIDABLE


def test_a_sentence_has_the_figure_its_interval_and_what_would_decide(tmp_path: Path) -> None:
    ttft, good = judged(tmp_path, [[QUICK] * 60], "ttft_p95<500ms", "goodput>0.9")
    assert ttft.sentence == (
        "100.0 ms (95 %: 100.0 to ?, 60 requests): too few samples for a bound on that side; "
        "about 73 requests might decide"
    )
    assert good.sentence == "100.0 % (95 %: 94.0 to 100.0, 60 requests)"
    assert ttft.to_dict() == {
        "objective": "ttft_p95<500ms",
        "figure": "ttft_ms",
        "statistic": "p95",
        "limit": 500.0,
        "unit": "ms",
        "answer": "not decidable",
        "value": 100.0,
        "low": 100.0,
        "high": None,
        "n": 60,
        "of": "request",
        "needed": 73,
        "sentence": ttft.sentence,
    }
