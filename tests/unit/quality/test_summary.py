"""The summary of answers whose truth was planted."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from loadgen.quality.summary import significant, summarise_quality


def answer(engine: str, at: int, right: bool | None, task: str = "gsm8k", **more: Any) -> dict[str, Any]:
    """A row; right None: the request failed."""
    row = {
        "task": task,
        "id": f"{task}-{at}",
        "engine": engine,
        "t_ns": at,
        "outcome": "ok",
        "truncated": False,
    }
    if right is None:
        return row | {"outcome": "failed", "error": "timeout"} | more
    read = {"text": str(at), "finish_reason": "stop", "output_tokens": 10, "extracted": "1", "correct": right}
    return row | read | more


def exam(engine: str, kinds: list[tuple[bool | None, int]], **more: Any) -> list[dict[str, Any]]:
    """Rows with so many right (True), wrong (False) or failed (None) in this order."""
    rights = [right for right, count in kinds for _ in range(count)]
    return [answer(engine, at, right, **more) for at, right in enumerate(rights)]


def text(engine: str, at: int, loops: bool, **more: Any) -> dict[str, Any]:
    row = answer(engine, at, True, task="longform", output_tokens=900)
    del row["correct"], row["extracted"]
    return row | {"repetition": {"tail_loop": loops, "longest_repeat_tokens": 9, "rep_4": 0.01}} | more


def only_pair(rows: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    (task,) = summarise_quality(rows, **options)["tasks"].values()
    (pair,) = task["pairs"]
    return dict(pair)


def test_counts_and_intervals_of_one_engine() -> None:
    rows = exam("a", [(True, 81), (False, 182), (None, 5)])
    rows[100] |= {"truncated": True, "finish_reason": "length"}
    del rows[101]["extracted"]
    side = summarise_quality(rows)["tasks"]["gsm8k"]["engines"]["a"]
    assert (side["n"], side["correct"], side["failed"], side["truncated"], side["unread"]) == (
        263,
        81,
        5,
        1,
        1,
    )
    assert (side["low"], side["high"]) == pytest.approx((0.2553, 0.3662), abs=5e-5)  # Newcombe 1998, table I
    assert side["finish_reasons"] == {"length": 1, "stop": 262}
    assert side["mean_output_tokens"] == 10


def test_a_planted_loss_is_found() -> None:
    """200 items: 150 both, 25 the baseline alone, 5 the other alone, 20 none."""
    rows = exam("fp16", [(True, 175), (False, 25)])
    rows += exam("q4", [(True, 150), (False, 25), (True, 5), (False, 20)])
    pair = only_pair(rows)
    assert (pair["engine"], pair["baseline"], pair["answer"]) == ("q4", "fp16", "worse")
    assert (pair["items"], pair["only_a"], pair["only_b"], pair["flips"]) == (200, 5, 25, 30)
    assert pair["difference"] == pytest.approx(-0.10)
    assert pair["p_exact"] == pytest.approx(0.000325, abs=1e-6)  # 2 P(Binomial(30, 1/2) <= 5)
    assert pair["sentence"].startswith(
        "q4 is worse than fp16 on gsm8k: 77.5 % against 87.5 % of 200 items right ("
    )
    assert "30 flip, exact McNemar p < 0.001" in pair["sentence"]
    assert len(significant(summarise_quality(rows))) == 1


def test_the_baseline_is_the_one_that_is_told() -> None:
    rows = exam("q4", [(True, 100), (False, 100)]) + exam("fp16", [(True, 160), (False, 40)])
    assert only_pair(rows, baseline="fp16")["answer"] == "worse"
    assert only_pair(rows)["answer"] == "better"
    with pytest.raises(ValueError, match="'gguf' has no answers; there are q4, fp16"):
        summarise_quality(rows, baseline="gguf")


def test_equal_answers_are_no_difference_larger_than_the_margin_and_never_equal() -> None:
    rows = exam("a", [(True, 120), (False, 80)]) + exam("b", [(True, 120), (False, 80)])
    pair = only_pair(rows)
    assert pair["answer"] == "no difference larger than the margin"
    assert pair["sentence"] == (
        "b and a on gsm8k: no difference larger than 5 points (-1.9 to +1.9 points at 95 %; "
        "0 of 200 items flip)."
    )
    assert only_pair(rows, margin=0.01)["answer"] == "not decidable"


def test_few_items_decide_nothing_and_say_how_many_would() -> None:
    rows = exam("a", [(True, 12), (False, 8)]) + exam("b", [(True, 11), (False, 2), (True, 1), (False, 6)])
    pair = only_pair(rows)
    assert pair["answer"] == "not decidable"
    assert pair["needed"] > 20
    assert f"About {pair['needed']:,} items would decide." in pair["sentence"]


def test_same_accuracy_may_hide_flips() -> None:
    pair = only_pair(exam("a", [(True, 100), (False, 100)]) + exam("b", [(False, 100), (True, 100)]))
    assert (pair["difference"], pair["flip_share"], pair["answer"]) == (0.0, 1.0, "not decidable")


def test_a_significant_difference_below_the_margin_is_said_to_be_small() -> None:
    rows = exam("a", [(True, 3000), (False, 1000)]) + exam("b", [(True, 2960), (False, 1040)])
    pair = only_pair(rows)
    assert pair["answer"] == "worse"
    assert "less than the margin" in pair["sentence"]


def test_failures_are_left_out_and_many_decide_nothing() -> None:
    few = exam("a", [(True, 200)]) + exam("b", [(True, 195), (None, 5)])
    assert (only_pair(few)["items"], only_pair(few)["failed"]) == (195, 5)
    assert only_pair(few)["answer"] == "no difference larger than the margin"
    many = only_pair(exam("a", [(True, 200)]) + exam("b", [(True, 100), (None, 100)]))
    assert many["sentence"] == "b and a on gsm8k: not decidable, since 100 of 200 items failed."


def test_an_item_asked_again_after_a_failure_counts_once() -> None:
    rows = [answer("a", 1, None), answer("a", 1, True), answer("a", 1, None)]
    side = summarise_quality(rows)["tasks"]["gsm8k"]["engines"]["a"]
    assert (side["n"], side["correct"], side["failed"]) == (1, 1, 0)


def test_an_engine_against_itself_is_the_noise_floor() -> None:
    rows = exam("a", [(True, 100)]) + exam("a", [(False, 3), (True, 97)], repeat=1)
    rows += exam("b", [(True, 100)])
    rows[100]["text"] = "otherwise"
    task = summarise_quality(rows)["tasks"]["gsm8k"]
    noise = task["engines"]["a"]["noise"]
    assert (noise["items"], noise["flips"], noise["share"], noise["same_text"]) == (100, 3, 0.03, 0.99)
    assert task["engines"]["a"]["n"] == 100
    assert "Asked again, an engine flips 3.0 %." in task["pairs"][0]["sentence"]


def test_long_form_is_about_repetition() -> None:
    rows = [text("a", at, loops=False) for at in range(60)] + [
        text("b", at, loops=at < 20) for at in range(60)
    ]
    rows[0]["repetition"]["longest_repeat_tokens"] = 70
    task = summarise_quality(rows)["tasks"]["longform"]
    assert task["measure"] == "clean"
    assert [task["engines"][e]["tail_loops"] for e in "ab"] == [0, 20]
    assert [task["engines"][e]["correct"] for e in "ab"] == [59, 40]
    assert task["engines"]["a"]["long_repeats"] == 1
    assert task["pairs"][0]["sentence"].startswith(
        "b repeats itself more than a on longform: 33.3 % against 1.7 % of 60 texts; 19 flip, exact McNemar"
    )


def test_strict_beside_flexible_and_subjects() -> None:
    rows = exam("a", [(True, 10)], strict=False, flexible=True, subject="law") + exam("b", [(False, 10)])
    rows += [row | {"subject": "law"} for row in rows[10:]]
    task = summarise_quality(rows)["tasks"]["gsm8k"]
    assert (task["engines"]["a"]["strict"]["correct"], task["engines"]["a"]["correct"]) == (0, 10)
    assert task["subjects"] == {"law": {"a": [10, 10], "b": [0, 10]}}
    assert task["pairs"][0]["subjects"] == {"law": {"n": 10, "only_a": 0, "only_b": 10}}


def test_three_engines_and_two_tasks_are_one_family() -> None:
    rows = []
    for task in ("gsm8k", "mmlu"):
        for engine in "abc":
            rows += exam(engine, [(True, 50), (False, 50)], task=task)
    rows += exam("d", [(True, 50 - 8), (False, 58)])
    summary = summarise_quality(rows, baseline="b")
    pairs = [(p["engine"], p["baseline"]) for p in summary["tasks"]["mmlu"]["pairs"]]
    assert pairs == [("a", "b"), ("c", "b"), ("c", "a")]
    worst = [p for p in summary["tasks"]["gsm8k"]["pairs"] if p["engine"] == "d"]
    assert [p["p_exact"] for p in worst] == pytest.approx([2 / 2**8] * 3)
    assert worst[0]["p_adjusted"] == pytest.approx(9 * 2 / 2**8)
    assert worst[0]["answer"] == "not decidable"


def test_false_claims_are_rare() -> None:
    """Of 300 pairs of equally good engines at most 5 % are called different."""
    rng = random.Random(3)
    claims = 0
    for _ in range(300):
        rows = [answer(e, at, rng.random() < 0.7) for at in range(60) for e in "ab"]
        claims += len(significant(summarise_quality(rows)))
    assert claims <= 15 + 6


@pytest.mark.parametrize("margin", [0, 1, -0.1, 5, float("nan")])
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(ValueError, match="the margin is a share"):
        summarise_quality([], margin=margin)


def test_nothing_measured_and_nothing_in_common() -> None:
    assert summarise_quality([])["tasks"] == {}
    pair = only_pair([answer("a", 1, True), answer("b", 2, True)])
    assert pair["sentence"] == "b and a have no gsm8k items that both answered."
    assert "difference" not in pair
    assert (
        json.loads(json.dumps(summarise_quality([answer("a", 1, None)])))["tasks"]["gsm8k"]["engines"]["a"][
            "n"
        ]
        == 0
    )
