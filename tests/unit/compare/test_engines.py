"""From a run directory to comparisons: which turns are paired, and what of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.compare import NOT_DECIDABLE, compare_engines, engine_blocks
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
    return {name: engine_blocks(engine) for name, engine in load_run(run).engines.items()}


def test_blocks_are_paired(tmp_path: Path) -> None:
    blocks = six_blocks(tmp_path)
    assert blocks["a"]["ttft_ms"] == {b: pytest.approx(100 + 10 * b) for b in range(6)}
    assert blocks["b"]["chunk_gap_ms"] == {b: pytest.approx(200 + 20 * b) for b in range(6)}
    # 8 tokens (4 of them of the failed request) in half a second times the scale.
    assert blocks["a"]["throughput_tokens_per_s"][0] == pytest.approx(16)
    assert "read_lag_ms" not in blocks["a"]
    found = compare_engines(blocks)
    # A machine that slows down from block to block widens no interval: it slows both.
    for name in ("ttft_ms", "tpot_ms", "e2e_ms", "chunk_gap_ms"):
        assert found["b", name].ratio.low == pytest.approx(2)
        assert found["b", name].better == found["a", name].better == "a"
        assert found["a", name].ratio.ratio == pytest.approx(0.5)
        assert (found["a", name].baseline, found["b", name].baseline) == ("b", "a")
    for name in ("throughput_tokens_per_s", "decode_tokens_per_s"):
        assert found["b", name].ratio.high == pytest.approx(0.5)
        assert found["b", name].better == "a"
    assert found["b", "ttft_ms"].sentence.startswith("a has the lower TTFT: b / a 2.00")


def test_a_block_cut_short_is_not_compared(tmp_path: Path) -> None:
    found = compare_engines(six_blocks(tmp_path, last_complete=False))["b", "ttft_ms"]
    assert found.ratio.blocks == 5
    assert found.better == NOT_DECIDABLE
    assert found.sentence == "not decidable: an interval needs 6 complete blocks, there are 5"


def test_one_engine_compares_nothing_and_three_have_one_baseline(tmp_path: Path) -> None:
    one = {"ttft_ms": dict.fromkeys(range(6), 1.0)}
    assert compare_engines({"a": one}) == {}
    found = compare_engines({"a": one, "b": one, "c": one}, baseline="b")
    assert {k[0]: c.baseline for k, c in found.items()} == {"a": "b", "b": "a", "c": "b"}


def test_a_figure_that_only_one_engine_has(tmp_path: Path) -> None:
    found = compare_engines({"a": {"ttfa_ms": {0: 1.0}}, "b": {}})
    assert found["b", "ttfa_ms"].better == NOT_DECIDABLE


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_the_mean_of_a_metric_is_that_of_its_samples(metric: Any) -> None:
    rows = [*FIVE, row(tpot_ms=20.0, read_lag_ms=3.0, send_lag_ms=1.0, headers_ms=2.0, connect_ms=4.0), row()]
    data = columns(rows)
    for mask in (np.ones(7, dtype=np.bool_), np.arange(7) % 2 == 0, np.zeros(7, dtype=np.bool_)):
        samples = metric.samples(data, mask)
        expected = pytest.approx(samples.mean()) if len(samples) else None
        assert metric.mean(data, mask) == expected
