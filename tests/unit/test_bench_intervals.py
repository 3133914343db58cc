"""The comparison on made runs whose ratio is known: a small version of benchmarks/intervals.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from intervals import TPOT, TTFT, WAVE, made_run, repeat, table
from noise import RECORDED, of_run, parts, read

HEADLINES = ("ttft_ms", "tpot_ms", "decode_tokens_per_s", "e2e_ms", "throughput_tokens_per_s")
RUNS = 60  # few, but always the same; benchmarks/intervals.py takes a thousand


def test_made_runs_have_what_real_ones_have() -> None:
    slow, fast = made_run(np.random.default_rng(5), 1.5, 40)
    ttft = [np.log(e.columns.number["ttft_ms"]).reshape(40, 4, WAVE) for e in (slow, fast)]
    assert ttft[0].mean() - ttft[1].mean() == pytest.approx(np.log(1.5), abs=0.05)


def test_the_parts_of_made_runs_are_found_again() -> None:
    # 400 blocks: what is shared by a block, of TTFT nothing, is the hardest to see.
    slow, fast = made_run(np.random.default_rng(6), 1.5, 400)
    for figure, sizes in (("ttft_ms", TTFT), ("tpot_ms", TPOT)):
        found = parts(of_run(slow, figure, WAVE), of_run(fast, figure, WAVE))
        assert (found.blocks, found.waves, found.freedom) == (400, 4, 1197)
        assert found.block**2 == pytest.approx(sizes["block"] ** 2, abs=4e-4)
        assert found.wave == pytest.approx((sizes["wave"],) * 2, rel=0.1)
        assert found.own == pytest.approx((sizes["own"],) * 2, rel=0.1)
        # One place of four apart: a standard deviation of half of it.
        assert found.place == pytest.approx((abs(sizes["first"]) / 2,) * 2, rel=0.1, abs=0.003)
        of_turn = sizes["turn"] ** 2 + sizes["wave"] ** 2 / 4 + sizes["own"] ** 2 / 64
        assert found.ratio == pytest.approx((2 * of_turn) ** 0.5, rel=0.1)


def test_the_parts_are_those_of_the_recording() -> None:
    recorded = read(RECORDED)
    for figure, sizes in (("ttft_ms", TTFT), ("tpot_ms", TPOT)):
        found = parts(*recorded[figure])
        assert found.block == pytest.approx(sizes["block"], abs=0.001)
        for of, name in ((found.wave, "wave"), (found.own, "own")):
            assert np.mean(np.square(of)) ** 0.5 == pytest.approx(sizes[name], abs=0.001)
        assert np.mean(np.square(found.place)) ** 0.5 == pytest.approx(abs(sizes["first"]) / 2, abs=0.03)


@pytest.mark.parametrize("apart", [False, True], ids=["one run", "two runs"])
def test_intervals_hold_the_ratio_as_often_as_they_say(apart: bool) -> None:
    found = repeat(RUNS, 1.05, 6, apart=apart)
    for name in HEADLINES:
        assert 0.88 <= found[name]["held"] / RUNS <= 1, name
        assert found[name]["claimed"] / RUNS <= 0.05, name
    for name in ("ttft_ms p50", "e2e_ms p95"):
        assert found[name]["held"] / RUNS >= 0.85, name
    assert found["ttft_ms p99"]["none"] == RUNS  # 384 requests are too few for it


def test_a_difference_of_a_fifth_is_found() -> None:
    found = repeat(20, 1.2, 6)
    for name in HEADLINES:
        assert found[name]["claimed"] / 20 >= 0.8, name


def test_the_table_of_the_docs() -> None:
    def result(blocks: int, ratio: float, held: int, claimed: int) -> dict[str, object]:
        found = {"ttft_ms": {"runs": 10, "held": held, "claimed": claimed}, "p99": {"runs": 10, "none": 10}}
        return {"blocks": blocks, "ratio": ratio, "figures": found}

    results = [result(6, 1.05, 9, 0), result(6, 1.2, 10, 8), result(12, 1.05, 10, 1), result(12, 1.2, 10, 10)]
    assert table(results) == [
        "| 6 / 12 blocks | held it | claimed at 1.05 | claimed at 1.2 |",
        "|---|---|---|---|",
        "| ttft_ms | 95.0 / 100.0 % | 0.0 / 10.0 % | 80.0 / 100.0 % |",
    ]
