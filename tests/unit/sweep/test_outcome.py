"""What a person is told of a sweep, and what sweep.json says."""

from __future__ import annotations

from typing import Any

import pytest

from loadgen.sweep.plan import Plan
from tests.unit.sweep.made import VOID, figures, sweep

FLAT = {1: figures(50), 2: figures(98), 4: figures(100), 8: figures(101), 16: figures(102)}
BROKEN = ("ttft_p95<40ms: 50 ms (95 % interval 45 to 60)",)
NO_SAMPLES = ("ttft_p95<40ms: too few samples",)


def with_slo(*answers: str) -> dict[int, dict[str, Any]]:
    said = {"not met": BROKEN, "not decidable": NO_SAMPLES}
    return {
        2**i: figures(50 * 2**i, slo=answer, slo_sentences=list(said.get(answer, ())))
        for i, answer in enumerate(answers)
    }


@pytest.mark.parametrize(
    ("curve", "sentence"),
    [
        (
            FLAT,
            "a: knee at 2 users (98.0 tok/s; the most is 102.0 tok/s at 16 users): more users give 5 % more "
            "at most, "
            "1 give less",
        ),
        (
            {4: figures(100), 8: figures(99), 16: figures(98)},
            "a: knee at 4 users (100.0 tok/s): more users give 5 % more at most, fewer were not measured",
        ),
        (
            {1: figures(50), 2: figures(100)},
            "a: no knee yet: throughput still rises, 100.0 tok/s at 2 users is the most so far",
        ),
        (
            {16: figures(1323), 64: figures(1170)},
            "a: no knee yet: the last step gave less (1,170 tok/s at 64 users), one decides nothing; "
            "the most was 1,323 tok/s at 16 users",
        ),
        (
            {1: figures(50), 2: figures(90, failed=32, failed_by_kind={"http_503": 32}, validity="void")},
            "a: no knee: requests fail at 2 users (32 of 64 requests failed: http_503); the most was 50.0 "
            "tok/s at "
            "1 user",
        ),
        (
            {n: figures(50, validity="void", findings=VOID) if n > 1 else figures(50) for n in (1, 2, 4)},
            "a: no knee: two steps in a row cannot be believed (the generator was busy); the most was 50.0 "
            "tok/s at "
            "1 user",
        ),
        (
            {1: figures(None, validity="void", findings=VOID)},
            "a: nothing can be said, no step gave figures that can be used (the generator was busy)",
        ),
    ],
)
def test_the_knee_in_a_sentence(curve: dict[int, dict[str, Any]], sentence: str) -> None:
    assert sweep(curve).sentences("a") == [sentence]


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (
            ("met", "met", "not met"),
            "a: the highest load within ttft_p95<40ms is 2 users (100.0 tok/s); 4 users break "
            "it (ttft_p95<40ms: "
            "50 ms (95 % interval 45 to 60))",
        ),
        (
            ("met", "met"),
            "a: the highest load within ttft_p95<40ms is 2 users (100.0 tok/s); more were not measured",
        ),
        (
            ("met", "not decidable", "not decidable", "not met"),
            "a: the highest load within ttft_p95<40ms is 1 user (50.0 tok/s); 8 users break it (ttft_p95"
            "<40ms: 50 ms "
            "(95 % interval 45 to 60)); not decidable with 2, 4 users (ttft_p95<40ms: too few samples)",
        ),
        (
            ("not met",),
            "a: no load is known to be within ttft_p95<40ms: 1 user breaks it (ttft_p95<40ms: 50 ms (95 "
            "% interval "
            "45 to 60))",
        ),
        (
            ("not decidable",),
            "a: no load is known to be within ttft_p95<40ms: not decidable with 1 user (ttft_p95<40ms: "
            "too few "
            "samples)",
        ),
    ],
)
def test_the_slo_in_a_sentence(answers: tuple[str, ...], sentence: str) -> None:
    curve = with_slo(*answers)
    plan = Plan((1, 2, 4, 8, 16), slo=True)
    assert sweep(curve, plan=plan, slo=["ttft_p95<40ms"]).sentences("a")[0] == sentence


def test_the_same_in_numbers() -> None:
    assert sweep(FLAT).to_dict()["engines"]["a"] == {
        "flag": "a=vllm:http://127.0.0.1:8000",
        "stopped": "flat",
        "best": {"load": 16, "throughput_tokens_per_s": 102},
        "knee": {"load": 2, "below": 1, "throughput_tokens_per_s": 98},
        "slo": None,
        "sentences": sweep(FLAT).sentences("a"),
    }
    made = sweep(with_slo("met", "not met"), plan=Plan((1, 2, 4), slo=True), slo=["x"])
    found = made.to_dict()["engines"]["a"]
    assert (found["stopped"], found["knee"], found["slo"]) == ("slo", None, {"within": 1, "broken": 2})


def test_a_server_that_became_another_one_between_steps_is_told() -> None:
    made = sweep({1: figures(50), 2: figures(90, server="vLLM 0.33.0 m\x1b[31m")})
    assert made.sentences("a")[-1] == (
        "a: its steps are of different servers, so don't compare them: vLLM 0.32.0 m; vLLM 0.33.0 m?[31m"
    )
