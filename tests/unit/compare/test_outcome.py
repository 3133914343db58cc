"""Verdicts: what a set of answers allows to say of one scenario, and of several."""

import doctest
from typing import Any

import pytest

from loadgen.compare import outcome, uses
from loadgen.compare.outcome import Outcome, gain, outcomes, overall
from loadgen.compare.result import Row
from loadgen.compare.uses import LONG, MANY
from loadgen.compare.uses import SINGLE as SINGLE_USE
from loadgen.compare.verdict import NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.validity.finding import Level
from tests.unit.compare.compared import DECODE, THROUGHPUT, TTFT, comparison, level, row


def one(*rows: Row, use: uses.Use = SINGLE_USE, **more: Any) -> Outcome:
    (found,) = outcomes(comparison(*rows, **more), use)
    return found


@pytest.mark.parametrize(
    ("rows", "answer", "better", "sentence"),
    [
        (
            (row(TTFT, 0.5), row(DECODE, 1.4)),
            "better",
            "b",
            "b is better than a in TTFT 0.50 x (0.49 to 0.51) and decode speed 1.40 x (1.37 to 1.43)",
        ),
        (
            (row(TTFT, 0.5), row(DECODE, 1.01, NO_DIFFERENCE)),
            "better",
            "b",
            "b is better than a in TTFT 0.50 x (0.49 to 0.51); no difference that matters in decode speed",
        ),
        (
            (row(TTFT, 2.0), row(DECODE, 0.96, NOT_DECIDABLE)),
            "better",
            "a",
            "a is better than b in TTFT 0.50 x (0.49 to 0.51); not decidable: decode speed "
            "(about 20 blocks might decide)",
        ),
        (
            (row(TTFT, 0.5), row(DECODE, 0.5)),
            "each in its own",
            None,
            "b is ahead of a in TTFT 0.50 x (0.49 to 0.51); a is ahead of b in decode speed 2.00 x "
            "(1.96 to 2.04)",
        ),
        (
            (row(TTFT, 1.0, NO_DIFFERENCE), row(DECODE, 1.0, NO_DIFFERENCE)),
            "no difference",
            None,
            "no difference that matters in TTFT and decode speed",
        ),
        (
            (row(TTFT, 1.0, NO_DIFFERENCE), row(DECODE, 1.0, NOT_DECIDABLE, needed=None)),
            "not decidable",
            None,
            "no difference that matters in TTFT; not decidable: decode speed",
        ),
        (
            (row(THROUGHPUT, 2.0),),
            "not decidable",
            None,
            "not decidable: nothing was measured of both engines",
        ),
    ],
)
def test_one_scenario(rows: tuple[Row, ...], answer: str, better: str | None, sentence: str) -> None:
    found = one(*rows)
    assert (found.answer, found.better, found.sentence) == (answer, better, sentence)


def test_the_baseline_ahead_reads_the_ratio_the_other_way() -> None:
    # b takes 2.00 times a's time, 1.96 to 2.04: a takes 0.50 of b's, 1 / 2.04 to 1 / 1.96.
    assert gain(row(TTFT, 2.0)) == "TTFT 0.50 x (0.49 to 0.51)"
    assert gain(row(TTFT, 0.5)) == "TTFT 0.50 x (0.49 to 0.51)"


def test_only_the_figures_of_the_use_decide() -> None:
    many = one(row(THROUGHPUT, 1.8), row(DECODE, 0.5), use=MANY)
    assert (many.answer, many.better, [r.figure for r in many.rows]) == ("better", "b", [THROUGHPUT])


def test_a_void_run_has_no_verdict() -> None:
    found = one(row(TTFT, 0.5), validity=level(Level.VOID))
    assert (found.answer, found.better, found.rows) == ("void", None, ())
    assert found.sentence == "no verdict: the run is void, a: no turn is complete; let the run go on"


def test_what_lessens_a_verdict_is_said_in_it() -> None:
    found = one(
        row(TTFT, 0.5), validity=level(Level.SUSPECT), simulated=["a", "b"], pairing="blocks by prompt"
    )
    assert found.said.endswith(" (suspect run; from runs made apart; b, a simulated)")
    assert one(row(TTFT, 0.5)).said == one(row(TTFT, 0.5)).sentence


def test_rows_are_named() -> None:
    assert one(row(TTFT, 0.5)).to_dict()["because"] == [
        {"scenario": "single_user", "figure": TTFT, "statistic": "mean", "engine": "b", "baseline": "a"}
    ]


def test_three_engines_are_two_pairs() -> None:
    found = outcomes(comparison(row(TTFT, 0.5), row(TTFT, 2.0, engine="c")), SINGLE_USE)
    assert [(o.engine, o.baseline, o.better) for o in found] == [("b", "a", "b"), ("c", "a", "a")]


AHEAD, BEHIND = row(TTFT, 0.5), row(TTFT, 2.0)
SAME, OPEN = row(TTFT, 1.0, NO_DIFFERENCE), row(TTFT, 1.0, NOT_DECIDABLE)


@pytest.mark.parametrize(
    ("rows", "answer", "better", "sentence"),
    [
        ([AHEAD, AHEAD], "better", "b", "b is better in s0 and s1"),
        (
            [AHEAD, SAME, OPEN],
            "better",
            "b",
            "b is better in s0; no difference that matters in s1; not decidable: s2",
        ),
        ([AHEAD, BEHIND], "each in its own", None, "b is ahead in s0; a is ahead in s1"),
        ([SAME, SAME], "no difference", None, "no difference that matters in s0 and s1"),
        ([SAME, OPEN], "not decidable", None, "no difference that matters in s0; not decidable: s1"),
        ([OPEN], "not decidable", None, "not decidable: s0"),
    ],
)
def test_over_all(rows: list[Row], answer: str, better: str | None, sentence: str) -> None:
    (found,) = overall([one(r, scenario=f"s{n}") for n, r in enumerate(rows)])
    assert (found.answer, found.better, found.sentence) == (answer, better, sentence)


def test_a_split_scenario_counts_for_both() -> None:
    (found,) = overall([one(AHEAD, scenario="s0"), one(AHEAD, row(DECODE, 0.5), use=LONG, scenario="s1")])
    assert (found.answer, found.better) == ("each in its own", None)
    assert found.sentence == "b is ahead in s0 and s1; a is ahead in s1"


def test_void_runs_decide_nothing_over_all() -> None:
    void = one(AHEAD, scenario="s1", validity=level(Level.VOID))
    (found,) = overall([void])
    assert found.answer == "void"
    (found,) = overall([one(AHEAD, scenario="s0"), void])
    assert found.sentence == "b is better in s0; void, without a verdict: s1"


def test_caveats_are_said_once_over_all() -> None:
    fake = {"simulated": ["a", "b"]}
    suspect = one(AHEAD, scenario="s1", validity=level(Level.SUSPECT), **fake)
    (found,) = overall([one(AHEAD, scenario="s0", **fake), suspect])
    assert found.sentence == "b is better in s0 and s1 (b, a simulated; suspect run)"


def test_the_examples_are_true() -> None:
    assert doctest.testmod(outcome).failed == doctest.testmod(uses).failed == 0
