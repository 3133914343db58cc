"""From a run directory to comparisons: which turns are paired, and what of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.compare import NOT_DECIDABLE, Comparison, Side, compare_engines, compare_pairs
from loadgen.metrics import METRICS
from loadgen.report.load import load_run
from tests.unit.metrics.rows import FIVE, columns, row
from tests.unit.report.made import make_run


def six_blocks(path: Path, last_complete: bool = True) -> Any:
    """Two engines, A B B A ..., a request of 4 tokens a turn; b takes twice a's time in each block."""
    rows, turns = [], []
    for turn in range(12):
        block = turn // 2
        engine = "ab"[(turn + 1) // 2 % 2]
        scale = (1 + block / 10) * (2 if engine == "b" else 1)
        events = [round(scale * us) for us in (100_000, 200_000, 300_000, 400_000)]
        more = {"output_tokens": 4, "tpot_ms": scale * 100, "turn": turn, "block": block}
        rows.append(row(turn * 10, scale / 2, engine=engine, event_us=events, **more))
        rows.append(row(turn * 10, 0.1, engine=engine, outcome="failed", ttft_ms=9e9, **more))
        complete = last_complete or block < 5
        turns.append((engine, turn, turn * 10.0, turn * 10.0 + scale / 2, complete))
    run = make_run(path, rows, engines=[{"name": "a"}, {"name": "b"}], turns=turns)
    return [Side.of(name, engine) for name, engine in load_run(run).engines.items()]


def means(found: list[Comparison]) -> dict[str, Comparison]:
    return {c.figure.name: c for c in found if c.statistic in ("mean", "value")}


def test_blocks_are_paired(tmp_path: Path) -> None:
    sides = six_blocks(tmp_path)
    blocks = {side.name: side.values for side in sides}
    assert blocks["a"]["ttft_ms"] == {b: pytest.approx(100 + 10 * b) for b in range(6)}
    assert blocks["b"]["chunk_gap_ms"] == {b: pytest.approx(200 + 20 * b) for b in range(6)}
    # 8 tokens (4 of them of the failed request) in half a second times the scale.
    assert blocks["a"]["throughput_tokens_per_s"][0] == pytest.approx(16)
    assert "read_lag_ms" not in blocks["a"]
    found = means(compare_engines(sides))
    # A machine that slows down from block to block widens no interval: it slows both.
    for name in ("ttft_ms", "tpot_ms", "e2e_ms", "chunk_gap_ms"):
        there, back = found[name], found[name].inverse()
        assert (there.engine, there.baseline, back.engine, back.baseline) == ("b", "a", "a", "b")
        assert there.ratio.low == pytest.approx(2)
        assert there.better == back.better == "a"
        assert back.ratio.ratio == pytest.approx(0.5)
        assert back.sentence.startswith("a has the lower ")
    for name in ("throughput_tokens_per_s", "decode_tokens_per_s"):
        assert found[name].ratio.high == pytest.approx(0.5)
        assert found[name].better == "a"
    assert found["ttft_ms"].sentence.startswith("a has the lower TTFT: b / a 2.00")


def test_a_block_cut_short_is_not_compared(tmp_path: Path) -> None:
    found = means(compare_engines(six_blocks(tmp_path, last_complete=False)))["ttft_ms"]
    assert found.ratio.blocks == 5
    assert found.better == NOT_DECIDABLE
    assert found.sentence == "not decidable: an interval needs 6 complete blocks, there are 5"


def test_one_engine_compares_nothing_and_three_have_one_baseline() -> None:
    one = {"ttft_ms": dict.fromkeys(range(6), 1.0)}
    a, b, c = (Side(name, one) for name in "abc")
    assert compare_engines([]) == compare_engines([a]) == []
    found = compare_engines([a, b, c], baseline="b")
    assert [(x.engine, x.baseline) for x in found] == [("a", "b"), ("c", "b")]


def test_a_figure_that_only_one_engine_has() -> None:
    found = compare_engines([Side("a", {"ttfa_ms": {0: 1.0}}), Side("b", {})])
    assert [(c.figure.name, c.better) for c in found] == [("ttfa_ms", NOT_DECIDABLE)]


def blocks_of(ratio: float, spread: float, n: int = 6) -> dict[int, float]:
    """Values whose logarithms have that mean and that standard deviation."""
    logs = np.linspace(-1, 1, n)
    return dict(enumerate(ratio * np.exp(logs / logs.std(ddof=1) * spread)))


ONES = dict.fromkeys(range(6), 1.0)


def against_ones(values: dict[str, dict[int, float]]) -> dict[str, Comparison]:
    return means(compare_engines([Side("a", dict.fromkeys(values, ONES)), Side("b", values)]))


def test_claims_are_corrected_within_the_headline_and_within_the_rest() -> None:
    # Student's t of 5 degrees of freedom is 2.571 at 5 %, 3.163 at 2.5 %. So an interval by itself begins at
    # 1.2 exp(-2.571 x 0.11 / sqrt(6)) = 1.069, beyond the margin; that of one of two claims at 1.041.
    close = blocks_of(1.2, 0.11)
    alone = {"ttft_ms": close, "headers_ms": close, "first_event_ms": blocks_of(3.0, 0.01)}
    by_itself = means(
        compare_engines([Side("b", dict(alone)), Side("a", dict.fromkeys(alone, ONES))], baseline="a")
    )
    assert by_itself["ttft_ms"].better == "a"  # the only headline
    assert by_itself["ttft_ms"].claims == 1
    assert by_itself["first_event_ms"].better == "a"  # sure enough for two
    assert by_itself["headers_ms"].better == "a"  # the last of the family needs no correction
    more = {**alone, "tpot_ms": close}
    found = against_ones(more)
    for name in ("ttft_ms", "tpot_ms"):
        assert found[name].p == by_itself["ttft_ms"].p
        assert found[name].p_adjusted == pytest.approx(2 * by_itself["ttft_ms"].p_adjusted)
        assert found[name].better == NOT_DECIDABLE
        assert "would do by itself, but not as one of 2 claims; about 7 blocks might" in found[name].sentence


def test_a_void_run_decides_nothing_and_simulated_engines_are_said() -> None:
    sides = [Side("a", {"ttft_ms": ONES}), Side("b", {"ttft_ms": dict.fromkeys(range(6), 2.0)})]
    (found,) = compare_engines(sides, void=True, simulated=["b"])
    assert (found.better, found.ratio.ratio) == (NOT_DECIDABLE, 2.0)
    assert found.sentence == "not decidable: the run is void (simulated: b)"
    (found,) = compare_engines(sides, simulated=["b", "c"])
    assert found.sentence.endswith(", 6 blocks) (simulated: b)")


def test_unpaired_blocks_have_welchs_interval() -> None:
    mine, base = Side("b", {"ttft_ms": blocks_of(2.0, 0.1, 8)}), Side("a", {"ttft_ms": blocks_of(1.0, 0.1)})
    (found,) = compare_pairs([(mine, base)], paired=False)
    assert (found.ratio.ratio, found.ratio.blocks) == (pytest.approx(2), 6)
    assert found.method == "unpaired blocks, Welch"


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_the_mean_of_a_metric_is_that_of_its_samples(metric: Any) -> None:
    rows = [*FIVE, row(tpot_ms=20.0, read_lag_ms=3.0, send_lag_ms=1.0, headers_ms=2.0, connect_ms=4.0), row()]
    data = columns(rows)
    for mask in (np.ones(7, dtype=np.bool_), np.arange(7) % 2 == 0, np.zeros(7, dtype=np.bool_)):
        samples = metric.samples(data, mask)
        expected = pytest.approx(samples.mean()) if len(samples) else None
        assert metric.mean(data, mask) == expected
