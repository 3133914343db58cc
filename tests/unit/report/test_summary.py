"""The JSON summary of runs whose figures are worked out by hand."""

import json
import random
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.report import compute, write_summary
from loadgen.report.summary import summarise_run
from loadgen.store import RunDir, StoreError, Suite
from tests.unit.metrics.rows import FIVE, row
from tests.unit.report.made import make_run, watched


def figures(run: RunDir | Suite, scenario: str = "concurrency", engine: str = "e") -> dict[str, Any]:
    result: dict[str, Any] = compute(run)[scenario][engine]
    return result


def test_five_requests_by_hand(tmp_path: Path) -> None:
    warm = row(-5, 1, engine="e", phase="warmup", ttft_ms=9999.0)
    out = figures(make_run(tmp_path, [warm, *FIVE]))
    # TTFT of the four that succeeded: 100, 200, 500, 1500 ms. The failed one's 300 and the warm-up's 9,999
    # are in no figure. Ranks of 4: p50 floor(2.5) - 1 = 1, p95 floor(4.3) - 1 = 3, p99 floor(4.46) - 1 = 3.
    assert out["ttft_ms"] == {
        "n": 4,
        "mean": 575.0,
        "p50": 200.0,
        "p95": 1500.0,
        "p99": 1500.0,
        "p99_rough": True,
    }
    # Gaps: 100 100 100 | 200 | 1000 | 400 600 500. Sorted ranks of 8: p50 is the 4th, p95 and p99 the 8th.
    assert out["chunk_gap_ms"] == {
        "n": 8,
        "mean": 375.0,
        "p50": 200.0,
        "p95": 1000.0,
        "p99": 1000.0,
        "p99_rough": True,
    }
    assert out["tpot_ms"] == {"n": 0, "mean": None, "p50": None, "p95": None, "p99": None}
    assert "scheduled_ttft_ms" not in out
    counts = out["counts"]
    assert (counts["requests"], counts["ok"], counts["failed"], counts["cancelled"]) == (5, 4, 1, 0)
    assert counts["failed_by_kind"] == {"truncated": 1}
    assert counts["warmup_requests"] == 1
    assert counts["output_tokens"] == 5 + 4 + 5 + 8
    assert counts["cached_tokens"] is None
    window = out["window"]
    assert window["throughput_tokens_per_s"] == pytest.approx(1.6)  # test_window.py has the arithmetic
    assert window["concurrency"] == pytest.approx(1.1)
    assert window["littles_residual"] == pytest.approx(1 / 11)
    assert (window["seconds"], window["turns_complete"], window["turns_incomplete"]) == (10.0, 1, 0)
    assert not {"incomplete", "interrupted", "simulated"} & out.keys()


def test_what_the_server_counted_itself(tmp_path: Path) -> None:
    run = make_run(tmp_path, FIVE, in_server=[(t + 0.5, 1, 2 * (t >= 5)) for t in range(12)])
    window = figures(run)["window"]
    assert window["concurrency"] == pytest.approx(1.1)
    assert window["server_concurrency"] == pytest.approx(
        2.0
    )  # 5 s of 1 and 5 s of 3; two samples lie outside
    # It is off by 0.9, and the standard error is 1 / sqrt(10): chance may explain it.
    assert window["server_concurrency_contradicts"] is False
    with open(run.path / "engine.jsonl", "ab") as f:
        f.write(b'{"engine": "e", "error": "away"}\n{"engine": "e", "t_ns"')
    assert figures(run)["window"] == window
    assert any("engine.jsonl" in w for w in summarise_run(run).warnings)
    assert "server_concurrency" not in figures(make_run(tmp_path, FIVE))["window"]


def test_what_the_gpus_used(tmp_path: Path) -> None:
    """400 W over the turn's 10 s, in which 16 tokens arrived and three successful requests ended."""
    out = figures(watched(make_run(tmp_path, FIVE)))
    assert out["gpu"] == {
        "gpus": 1,
        "gpus_named": True,
        "energy_j": pytest.approx(4000.0),
        "energy_source": "counter",
        "turns": 1,
        "joules_per_output_token": pytest.approx(250.0),
        "joules_per_request": pytest.approx(4000 / 3),
        "mean_power_w": pytest.approx(400.0),
        "peak_memory_bytes": 2**30,
    }
    assert "gpu" not in figures(make_run(tmp_path, FIVE))


def test_counts(tmp_path: Path) -> None:
    common = {"engine": "e", "event_us": [10, 20, 30], "asked_output_tokens": 256, "prompt_tokens": 50}
    rows = [
        row(**common, output_tokens=256, token_source="usage", cached_tokens=0),
        row(**common, output_tokens=256, token_source="usage", cached_tokens=24, coalesced_events=2),
        row(**{**common, "prompt_tokens": 51}, output_tokens=12, token_source="timings", short_answer=True),
        row(**common, output_tokens=3, token_source="events", clock="user", ttft_error_ms=3.0),
        row(engine="e", outcome="cancelled"),
        row(engine="e", outcome="failed", error="http_500", output_tokens=7, coalesced_events=9),
        row(engine="e", outcome="failed", error="http_500"),
        row(engine="e", outcome="failed"),
    ]
    counts = figures(make_run(tmp_path, rows))["counts"]
    assert counts == {
        "requests": 8,
        "ok": 4,
        "failed": 3,
        "failed_by_kind": {"http_500": 2, "unknown": 1},
        "cancelled": 1,
        "short_answers": 1,
        "events": 12,
        "coalesced_events": 2,
        "inexact_requests": 2,
        "inexact_ttft": 1,
        "clock_steps": 0,
        "clock": {"kernel": 3, "user": 1},
        "token_source": {"events": 1, "timings": 1, "usage": 2},
        "prompt_tokens": 201,
        "prompt_tokens_min": 50,
        "prompt_tokens_max": 51,
        "output_tokens": 256 + 256 + 12 + 3,
        "asked_output_tokens": 1024,
        "output_asked": 4,
        "output_as_asked": 2,
        "cached_tokens": 24,
        "cached_tokens_max": 24,
        "cached_reported": 2,
        "warmup_requests": 0,
        "left_out_requests": 0,
    }


TWO_TURNS = (("e", 0, 0.0, 10.0, True), ("e", 1, 20.0, 25.0, False))


def test_turns_cut_short_are_shown_and_not_mixed_in(tmp_path: Path) -> None:
    late = row(20, 5, engine="e", turn=1, block=0, output_tokens=1000, event_us=[7_000_000], phase="drain")
    out = figures(make_run(tmp_path, [*FIVE, late], turns=TWO_TURNS))
    assert out["ttft_ms"]["p99"] == 1500.0
    assert out["counts"]["left_out_requests"] == 1
    assert out["window"]["throughput_tokens_per_s"] == pytest.approx(1.6)
    assert (out["window"]["turns_complete"], out["window"]["turns_incomplete"]) == (1, 1)
    assert [t["complete"] for t in out["window"]["turns"]] == [True, False]
    assert "incomplete" not in out


def test_no_complete_turn_gives_what_there_is_and_says_so(tmp_path: Path) -> None:
    out = figures(make_run(tmp_path, turns=[("e", 0, 0.0, 10.0, False)]))
    assert out["incomplete"] is True
    assert out["ttft_ms"]["n"] == 4
    assert out["window"]["throughput_tokens_per_s"] == pytest.approx(1.6)


def test_a_killed_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, state="running")
    lines = run.events_path.read_bytes().splitlines(keepends=True)
    run.events_path.write_bytes(lines[0])  # turn_start is all there is
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine":"e","ou')
    summary = summarise_run(run)
    assert summary.state == "interrupted"
    assert summary.warnings == [
        "requests.jsonl: the last line (6) is cut short, as when a run is killed; it is left out"
    ]
    out = summary.engines["e"]
    assert (out["interrupted"], out["incomplete"]) == (True, True)
    assert out["window"]["seconds"] == pytest.approx(
        11
    )  # up to the end of the last request that was recorded
    assert out["ttft_ms"]["n"] == 4


def test_only_a_journal_is_left(tmp_path: Path) -> None:
    run = make_run(tmp_path, [row(0, 4, engine="e", scenario="mine", output_tokens=8, event_us=[1_000_000])])
    run.events_path.unlink()
    run.manifest_path.unlink()
    summary = summarise_run(run)
    assert summary.scenario == "mine"
    assert summary.engines["e"]["window"]["throughput_tokens_per_s"] == pytest.approx(2.0)
    assert summary.engines["e"]["window"]["turns"][0]["derived"]
    assert len(summary.warnings) == 2


def test_damaged_lines_in_the_middle_are_counted_and_named(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    lines = run.journal_path.read_bytes().splitlines(keepends=True)
    wrong_type = orjson.dumps({**FIVE[0], "ttft_ms": "soon"}) + b"\n"
    run.journal_path.write_bytes(b"".join([lines[0], b"<html>\n", *lines[1:], wrong_type]))
    summary = summarise_run(run)
    assert summary.engines["e"]["counts"]["requests"] == 5
    assert summary.warnings == ["requests.jsonl: 2 lines are damaged and left out (line 2, 7)"]


def test_a_damaged_manifest_is_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.manifest_path.write_text("{")
    with pytest.raises(StoreError, match=r"manifest\.json is damaged"):
        compute(run)


def test_an_engine_that_was_never_measured_is_there(tmp_path: Path) -> None:
    out = figures(
        make_run(tmp_path, engines=[{"name": "e"}, {"name": "idle", "simulated": True}]), engine="idle"
    )
    assert out["counts"]["requests"] == 0
    assert out["ttft_ms"]["mean"] is None
    assert out["window"]["throughput_tokens_per_s"] is None
    assert (out["simulated"], out["incomplete"]) == (True, True)


def test_workers_journals_add_what_the_master_does_not_have(tmp_path: Path) -> None:
    numbered = [{**r, "worker": f"w{i % 2}", "point_ns": 100 + i} for i, r in enumerate(FIVE)]
    run = make_run(tmp_path, numbered[:4])
    for worker in ("w0", "w1"):
        mine = [r for r in numbered if r["worker"] == worker]
        run.worker_journal_path(worker).write_bytes(b"".join(orjson.dumps(r) + b"\n" for r in mine))
    whole = make_run(tmp_path, FIVE)
    assert compute(run) == compute(whole)


def test_the_order_of_a_journal_does_not_matter(tmp_path: Path) -> None:
    shuffled = list(FIVE)
    random.Random(3).shuffle(shuffled)
    assert compute(make_run(tmp_path, shuffled)) == compute(make_run(tmp_path, FIVE))


def test_a_suite_by_scenario(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    for scenario in ("single_user", "concurrency", "concurrency"):
        make_run(tmp_path, scenario=scenario, suite=suite)
    result = write_summary(suite)
    assert list(result) == ["single_user", "concurrency", "concurrency (2)"]
    assert json.loads((suite.path / "summary.json").read_text()) == result
