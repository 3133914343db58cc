"""What may be claimed of an interval and a margin."""

import doctest
import math

import numpy as np
import pytest

from loadgen.compare import verdict
from loadgen.compare.figures import FIGURES
from loadgen.compare.ratios import Ratio, half_width, paired_ratio
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE, Decision, decide, sentence

BY_NAME = {f.name: f for f in FIGURES}


def ratio(low: float, high: float, blocks: int = 8) -> Ratio:
    """A ratio with about that interval."""
    middle = math.sqrt(low * high)
    return Ratio(blocks, middle, low, high, math.log(high / middle) / half_width(1.0, blocks))


@pytest.mark.parametrize(
    ("low", "high", "answer", "higher"),
    [
        (1.06, 1.20, BETTER, True),
        (0.80, 0.95, BETTER, False),  # 1 / 1.05 is 0.952
        (0.97, 1.04, NO_DIFFERENCE, None),
        (1.01, 1.04, NO_DIFFERENCE, None),  # real, and smaller than the margin
        (1.00, 1.00, NO_DIFFERENCE, None),
        (1.05, 1.20, NOT_DECIDABLE, None),  # the margin itself is not beyond it
        (1.02, 1.10, NOT_DECIDABLE, None),
        (0.90, 1.00, NOT_DECIDABLE, None),
        (0.50, 2.00, NOT_DECIDABLE, None),
    ],
)
def test_decide(low: float, high: float, answer: str, higher: bool | None) -> None:
    got = decide(ratio(low, high))
    assert (got.answer, got.higher) == (answer, higher)


def test_the_margin_can_be_another() -> None:
    assert decide(ratio(1.06, 1.2), margin=1.1).answer == NOT_DECIDABLE
    with pytest.raises(ValueError, match="above 1"):
        decide(ratio(1.06, 1.2), margin=1.0)


def test_too_few_blocks_name_the_number_needed() -> None:
    assert decide(Ratio(3, 2.0, spread=0.01)) == Decision(NOT_DECIDABLE, needed=6)
    assert decide(Ratio(0)) == Decision(NOT_DECIDABLE, needed=6)


@pytest.mark.parametrize("middle", [1.2, 0.8, 1.0, 1.12])
def test_the_blocks_that_are_said_to_be_needed_would_decide(middle: float) -> None:
    found = Ratio(6, middle, middle * 0.7, middle / 0.7, -math.log(0.7) / half_width(1.0, 6))
    needed = decide(found).needed
    assert needed is not None
    assert found.spread is not None

    def with_blocks(n: int) -> str:
        half = half_width(found.spread or 0, n)
        return decide(
            Ratio(n, middle, middle * math.exp(-half), middle * math.exp(half), found.spread)
        ).answer

    assert with_blocks(needed + 1) != NOT_DECIDABLE
    assert with_blocks(needed - 1) == NOT_DECIDABLE


def test_a_ratio_on_the_margin_needs_more_blocks_than_anyone_has() -> None:
    assert decide(Ratio(6, 1.05, 1.0, 1.1025, 0.05)).needed is None


@pytest.mark.parametrize(("truth", "at_most", "at_least"), [(1.05, 0.05, 0.0), (1.2, 1.0, 0.8)])
def test_claims_are_rarely_wrong_and_mostly_made(truth: float, at_most: float, at_least: float) -> None:
    rng = np.random.default_rng(3)
    runs, claims = 500, 0
    for _ in range(runs):
        logs = rng.normal(math.log(truth), 0.06, 6)
        values = {k: math.exp(x) for k, x in enumerate(logs)}
        claims += decide(paired_ratio(values, dict.fromkeys(values, 1.0))).answer == BETTER
    assert at_least <= claims / runs <= at_most


@pytest.mark.parametrize(
    ("name", "found", "text"),
    [
        (
            "ttft_ms",
            Ratio(8, 2.0, 1.9, 2.1, 0.1),
            "b has the lower TTFT: a / b 2.00 (95 % interval 1.90 to 2.10, 8 blocks)",
        ),
        (
            "throughput_tokens_per_s",
            Ratio(8, 12.34, 11.98, 12.71, 0.1),
            "a has the higher throughput: a / b 12.3 (95 % interval 12.0 to 12.7, 8 blocks)",
        ),
        (
            "e2e_ms",
            Ratio(6, 1.01, 0.99, 1.03, 0.1),
            "no difference in end-to-end time larger than 5 %: "
            "a / b 1.01 (95 % interval 0.990 to 1.03, 6 blocks)",
        ),
        (
            "tpot_ms",
            Ratio(6, 1.05, 1.0, 1.1025, 0.05),
            "not decidable: a / b 1.05 (95 % interval 1.00 to 1.10, 6 blocks) reaches across the margin "
            "of 5 %; more than 1,000 blocks would be needed",
        ),
        ("ttft_ms", Ratio(2, 1.5), "not decidable: an interval needs 6 complete blocks, there are 2"),
        ("ttft_ms", Ratio(0), "not decidable: no complete block has TTFT of both a and b"),
    ],
)
def test_sentences(name: str, found: Ratio, text: str) -> None:
    assert sentence(BY_NAME[name], "a", "b", found, decide(found)) == text


def test_the_example_is_true() -> None:
    assert doctest.testmod(verdict).failed == 0
