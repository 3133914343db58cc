"""From run directories to a comparison: one run, two, suites; its JSON."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from loadgen.compare.result import BLOCKS, BY_PROMPT, UNPAIRED, RunComparison
from loadgen.compare.runs import compare_run, compare_runs, compare_target
from loadgen.store import RunDir, StoreError, Suite
from tests.unit.metrics.rows import T0, row
from tests.unit.report.made import make_run

REQUESTS = 4


def made(path: Path, engines: dict[str, float], *, blocks: int = 6, **more: Any) -> RunDir:
    """Turns A B B A; TTFT is 100 ms x the engine's factor x (1 + a tenth of the block); 3 tokens follow."""
    names = list(engines)
    settings = {"seed": 1, "prompt_tokens": 50, "turn_requests": REQUESTS, **more.pop("settings", {})}
    rows, turns = [], []
    for block in range(blocks):
        for k, name in enumerate(names if block % 2 == 0 else names[::-1]):
            turn = block * len(names) + k
            scale = engines[name] * (1 + block / 10)
            times = [round(scale * us) for us in (100_000, 200_000, 300_000, 400_000)]
            for n in range(REQUESTS):
                about = {"turn": turn, "block": block, "pair": block * REQUESTS + n, "output_tokens": 4}
                rows.append(
                    row(turn * 10, scale / 2, engine=name, event_us=times, tpot_ms=scale * 100, **about)
                )
            turns.append((name, turn, block, turn * 10.0, turn * 10.0 + scale / 2))
    run = make_run(path, rows, engines=[{"name": n} for n in names], turns=[], **settings, **more)
    write_turns(run, turns)
    return run


def write_turns(run: RunDir, turns: Iterable[tuple[str, int, int, float, float]]) -> None:
    from loadgen.store import EventsWriter

    run.events_path.unlink()
    events = EventsWriter(run.events_path)
    for name, turn, block, start, end in turns:
        at = {"engine": name, "turn": turn, "block": block}
        events.append("turn_start", t_ns=T0 + int(start * 1e9), mono_ns=int(start * 1e9), **at)
        events.append("turn_end", t_ns=T0 + int(end * 1e9), mono_ns=int(end * 1e9), complete=True, **at)
    events.append("run_end")
    events.close()


def answers(found: RunComparison, figure: str = "ttft_ms") -> list[tuple[Any, ...]]:
    return [
        (r.engine, r.baseline, round(r.ratio or 0, 3), r.better)
        for r in found.rows
        if r.figure == figure and r.statistic in ("mean", "value")
    ]


def test_engines_of_one_run(tmp_path: Path) -> None:
    run = made(tmp_path, {"a": 1.0, "b": 2.0, "c": 1.0})
    found = compare_run(run)
    assert answers(found) == [("b", "a", 2.0, "a"), ("c", "a", 1.0, None)]
    assert answers(found, "throughput_tokens_per_s")[0] == ("b", "a", 0.5, "a")
    assert (found.runs, found.engines, found.baseline) == ([run.name], ["a", "b", "c"], "a")
    assert (found.pairing, found.cannot_exclude, found.scenario) == (BLOCKS, [], "concurrency")
    ttft = found.row("b", "ttft_ms")
    assert ttft is not None
    # Blocks 1.0 to 1.5 of it, so 1.25 on average.
    assert (ttft.value, ttft.baseline_value) == (pytest.approx(250), pytest.approx(125))
    assert (ttft.samples, ttft.blocks, ttft.headline, ttft.method) == (24, 6, True, "paired blocks, t")
    # A factor of exactly 2 in every block is sure, however many claims there are.
    assert ttft.p_adjusted == pytest.approx(0, abs=1e-9)
    again = compare_run(run, baseline="b")
    assert answers(again) == [("a", "b", 0.5, "a"), ("c", "b", 0.5, "c")]
    assert again.engines == ["b", "a", "c"]
    with pytest.raises(StoreError, match="has no engine 'x'; it has a, b, c"):
        compare_run(run, baseline="x")


def test_each_engine_with_each(tmp_path: Path) -> None:
    run = made(tmp_path, {"a": 1.0, "b": 2.0, "c": 1.0})
    found = compare_run(run, all_pairs=True)
    # c / b = 1.0 / 2.0
    assert answers(found) == [("b", "a", 2.0, "a"), ("c", "a", 1.0, None), ("c", "b", 0.5, "c")]
    against_b = found.row("c", "ttft_ms", baseline="b")
    assert against_b is not None
    assert (against_b.baseline, against_b.ratio) == ("b", pytest.approx(0.5))
    # One family: there are half as many claims again as of two pairs.
    pairs = [r for r in found.rows if r.headline and r.p is not None]
    assert len(pairs) == 1.5 * len([r for r in compare_run(run).rows if r.headline and r.p is not None])
    held = compare_run(run, baseline="c", all_pairs=True)
    assert [(r[0], r[1]) for r in answers(held)] == [("a", "c"), ("b", "c"), ("b", "a")]
    (whole,) = compare_target(run, all_pairs=True)
    assert answers(whole) == answers(found)


def test_a_cut_run_has_ratios_of_the_blocks_that_both_have(tmp_path: Path) -> None:
    # The seventh block of the baseline took twice as long, and the other engine never came to its turn.
    rows, turns = [], []
    for turn in range(13):
        scale = (1.0, 1.3)[turn % 2] * (2 if turn == 12 else 1)
        events = [round(100_000 * scale), round(200_000 * scale)]
        engine = "ab"[turn % 2]
        for k in range(4):
            rows.append(row(turn * 20 + k, 0.5, engine=engine, event_us=events, turn=turn, block=turn // 2))
        turns.append((engine, turn, turn * 20.0, turn * 20.0 + 10, True))
    found = compare_run(make_run(tmp_path, rows, turns=turns, engines=[{"name": "a"}, {"name": "b"}]))
    ttft = found.row("b", "ttft_ms")
    assert ttft is not None
    assert (ttft.ratio, ttft.blocks) == (pytest.approx(1.3), 6)
    assert (ttft.value, ttft.baseline_value) == (pytest.approx(130), pytest.approx(800 / 7))
    (note,) = found.notes
    assert note.startswith("complete turns: a 7, b 6; an engine's figures are from all of its own, ratios")
    assert found.to_dict()["notes"] == [note]
    assert compare_run(made(tmp_path, {"a": 1.0, "b": 2.0})).notes == []


def test_percentiles_have_rows_and_too_few_samples_no_claim(tmp_path: Path) -> None:
    found = compare_run(made(tmp_path, {"a": 1.0, "b": 2.0}))
    rows = {r.statistic: r for r in found.rows if r.figure == "ttft_ms"}
    assert list(rows) == ["mean", "p50", "p95", "p99"]
    p50, p99 = rows["p50"], rows["p99"]
    # Nearest rank among 24: the 12th, of block 2.
    assert (p50.value, p50.baseline_value) == (pytest.approx(240), pytest.approx(120))
    assert (p50.better, p50.method, p50.headline) == ("a", "paired blocks, bootstrap", False)
    assert (p99.rough, p99.answer, p99.low, p99.ratio) == (True, "not decidable", None, pytest.approx(2))
    assert p99.needed == 250  # blocks of 4 requests, for 1,000
    assert p99.sentence == "not decidable: p99 needs 1,000 samples of each engine, there are 24 and 24"
    assert not p99.adjusted


def test_one_engine_has_nothing_to_compare(tmp_path: Path) -> None:
    found = compare_run(made(tmp_path, {"a": 1.0}))
    assert (found.rows, found.engines) == ([], ["a"])


def test_a_margin_of_ones_own(tmp_path: Path) -> None:
    run = made(tmp_path, {"a": 1.0, "b": 1.1})
    assert answers(compare_run(run)) == [("b", "a", 1.1, "a")]
    assert answers(compare_run(run, margin=1.2)) == [("b", "a", 1.1, None)]
    assert compare_run(run, margin=1.2).to_dict()["margin"] == 1.2


def test_a_void_run_decides_nothing(tmp_path: Path) -> None:
    run = made(tmp_path, {"a": 1.0, "b": 2.0})
    lines = run.journal_path.read_bytes().replace(b'"outcome":"ok"', b'"outcome":"failed"', 8)
    run.journal_path.write_bytes(lines)
    found = compare_run(run)
    assert found.validity.level.word == "void"
    assert {r.answer for r in found.rows} == {"not decidable"}
    assert {r.sentence for r in found.rows if not r.rough} == {"not decidable: the run is void"}


def test_before_and_after(tmp_path: Path) -> None:
    a = made(tmp_path, {"v": 1.0, "l": 2.0})
    b = made(tmp_path, {"l": 1.0, "v": 1.0})
    found = compare_runs(a, b)
    assert answers(found) == [("v (B)", "v (A)", 1.0, None), ("l (B)", "l (A)", 0.5, "l (B)")]
    assert found.engines == ["v (A)", "v (B)", "l (A)", "l (B)"]
    assert (found.baseline, found.pairing, found.runs) == ("v (A)", BY_PROMPT, [a.name, b.name])
    assert found.cannot_exclude[0].startswith("the runs were made apart")
    assert {f.evidence.partition(":")[0] for f in found.validity.findings} <= {a.name, b.name}
    assert answers(compare_runs(a, b, baseline="l")) == [
        ("l (B)", "l (A)", 0.5, "l (B)"),
        ("v (B)", "l (A)", 0.5, "v (B)"),
    ]
    assert answers(compare_runs(a, b, baseline="l (B)"))[0] == ("v (A)", "l (B)", 1.0, None)


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ("v", "l", [("l", "v")]),  # each alone on the card
        ("vl", "xy", [("x", "v"), ("y", "v")]),
        ("vl", "vx", [("v (B)", "v (A)"), ("x", "l")]),
        ("vl", "v", [("v (B)", "v (A)")]),
        ("v", "vl", [("v (B)", "v (A)")]),
    ],
)
def test_which_engines_are_held_against_each_other(
    tmp_path: Path, before: str, after: str, pairs: list[tuple[str, str]]
) -> None:
    runs = [made(tmp_path, dict.fromkeys(names, 1.0), blocks=2) for names in (before, after)]
    assert [(e, b) for e, b, _, _ in answers(compare_runs(*runs))] == pairs


def test_a_baseline_that_neither_run_has(tmp_path: Path) -> None:
    runs = [made(tmp_path, {name: 1.0}, blocks=1) for name in "vl"]
    assert answers(compare_runs(*runs, baseline="l"))[0][:2] == ("v", "l")
    with pytest.raises(StoreError, match="neither run has an engine 'x'; they have v, l"):
        compare_runs(*runs, baseline="x")


def test_runs_with_other_prompts_are_not_paired(tmp_path: Path) -> None:
    a = made(tmp_path, {"v": 1.0})
    b = made(tmp_path, {"v": 3.0}, blocks=8, settings={"seed": 2})
    found = compare_runs(a, b)
    (row,) = [r for r in found.rows if (r.figure, r.statistic) == ("ttft_ms", "mean")]
    assert (found.pairing, row.method, row.blocks) == (UNPAIRED, "unpaired blocks, Welch", 6)
    # Geometric means of 1, 1.1 .. 1.5 and of 3 x (1 .. 1.7): the drift of the blocks does not drop out.
    assert row.ratio == pytest.approx(3 * 1.3301 / 1.2385, rel=1e-3)
    assert row.low is not None
    assert row.low < 2.9
    assert "seed 1 and 2" in found.cannot_exclude[1]


def test_what_a_caller_looks_at_goes_by_the_names_of_the_comparison(tmp_path: Path) -> None:
    runs = [made(tmp_path, {"v": 1.0}, blocks=1) for _ in "ab"]

    def look(run: RunDir, data: Any, summary: Any) -> dict[str, str]:
        return {name: f"{name} of {run.name}" for name in data.engines}

    assert compare_run(runs[0], look=look).seen == {"v": f"v of {runs[0].name}"}
    found = compare_runs(*runs, look=look)
    assert found.seen == {f"v ({m})": f"v of {r.name}" for m, r in zip("AB", runs, strict=True)}


def test_suites_go_by_scenario(tmp_path: Path) -> None:
    suites = [Suite.create(tmp_path) for _ in "ab"]
    for suite, names in zip(suites, (("single_user", "concurrency"), ("concurrency", "x")), strict=True):
        for name in names:
            made(tmp_path, {"v": 1.0, "l": 2.0}, blocks=1, scenario=name, suite=suite)
    assert [c.scenario for c in compare_target(suites[0])] == ["single_user", "concurrency"]
    (found,) = compare_target(*suites)
    assert (found.scenario, found.runs) == (
        "concurrency",
        [suites[0].runs()[1].name, suites[1].runs()[0].name],
    )
    (found,) = compare_target(suites[0].runs()[0], suites[1].runs()[1])
    assert found.scenario == "single_user and x"
    with pytest.raises(StoreError, match="have no scenario in common"):
        compare_target(suites[0].runs()[0], suites[1])


def test_the_json(tmp_path: Path) -> None:
    found = compare_run(made(tmp_path, {"a": 1.0, "b": 2.0}))
    found.parts["memory"] = {"a": {}}
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert list(data) == [
        *("runs", "scenario", "margin", "confidence", "baseline", "engines", "simulated", "pairing"),
        *("cannot_exclude", "differences", "notes", "validity", "rows", "memory"),
    ]
    assert set(data["validity"]) == {"level", "findings"}
    assert data["rows"][0]["figure"] == "ttft_ms"
    assert data["rows"][0]["better"] == "a"


def test_where_users_varied_only_what_turns_have_is_compared(tmp_path: Path) -> None:
    run = made(tmp_path, {"a": 1.0, "b": 1.5})
    plain = {r.figure for r in compare_run(run).rows}
    with open(run.events_path, "ab") as f:
        for engine, turn in (("a", 0), ("b", 1)):
            at = {"t_ns": T0 + turn * 10**10, "mono_ns": turn * 10**10, "turn": turn, "engine": engine}
            f.write(json.dumps({"kind": "users", "users": 4, "settled": True, **at}).encode() + b"\n")
    found = compare_run(run)
    assert "ttft_ms" in plain
    assert {r.figure for r in found.rows} == {"throughput_tokens_per_s", "requests_per_s"}
    assert "times of requests are not compared" in found.cannot_exclude[0]
    assert compare_runs(run, run).cannot_exclude.count(found.cannot_exclude[0]) == 1
