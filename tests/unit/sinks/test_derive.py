"""derived.jsonl: its seconds are those worked out by hand, and its sums those of the summary."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.report import compute
from loadgen.sinks.context import RunContext
from loadgen.sinks.derive import write_derived
from loadgen.sinks.points.derived import derived_lines
from loadgen.sinks.points.windows import window_lines
from loadgen.sinks.schema import ENGINE_MEMORY, LLM_WINDOW, LLM_WINDOW_ALIGNED, RUN_SUMMARY
from loadgen.store import EventsWriter, Manifest, RunDir, StoreError
from loadgen.store.jsonl import read_rows
from tests.unit.metrics.rows import FIVE, T0, row
from tests.unit.report.made import make_run, watched

S = 10**9


def points(run: RunDir, measurement: str, **tags: str) -> list[dict[str, Any]]:
    rows = read_rows(write_derived(run))
    return [r for r in rows if r["measurement"] == measurement and tags.items() <= r["tags"].items()]


def by_time(rows: list[dict[str, Any]], field: str) -> dict[float, float]:
    return {(r["time_ns"] - T0) / S: r["fields"][field] for r in rows if field in r["fields"]}


def whole_run(path: Path, rows: list[dict[str, Any]], start_s: float, end_s: float, **more: Any) -> RunDir:
    """A run with start and end, so that there are seconds in which nothing happens."""
    run = make_run(path, rows, **{"state": "running", **more})
    events = EventsWriter(run.events_path)
    for kind, at in (("run_start", start_s), ("run_end", end_s)):
        events.append(kind, t_ns=T0 + int(at * S), mono_ns=10**15 + int(at * S))
    events.close()
    return run


def test_every_second_of_every_engine(tmp_path: Path) -> None:
    engines = [{"name": "e", "model": "m8"}, {"name": "f"}]
    run = whole_run(tmp_path, FIVE, -2.5, 12.2, engines=engines)
    manifest = run.manifest()
    manifest.host = {"name": "box"}
    manifest.write(run.manifest_path)
    windows = points(run, "llm_window", engine="e")
    assert windows[0]["tags"] == {
        "run": run.name,
        "scenario": "concurrency",
        "engine": "e",
        "model": "m8",
        "host": "box",
        "worker": "local",
    }
    # test_seconds.py has the arithmetic.
    assert by_time(windows, "tokens") == {
        **dict.fromkeys(range(-3, 13), 0),
        0: 7,
        1: 4,
        2: 1,
        9: 4,
    }
    assert by_time(windows, "measured_s") == {t: float(0 <= t < 10) for t in range(-3, 13)}
    assert by_time(windows, "turn_s") == {t: t for t in range(10)}
    assert by_time(windows, "ttft_ms") == {0: 100, 1: 200, 9: 1500}
    assert {r["fields"]["phase"] for r in windows} == {"measure", "idle"}
    assert {r["fields"]["provisional"] for r in windows} == {0}
    # The other engine had no turn: nothing, which is known, at every second.
    assert by_time(points(run, "llm_window", engine="f"), "tokens") == dict.fromkeys(range(-3, 13), 0)


def test_warm_up_is_shown_and_never_mixed_into_a_turn(tmp_path: Path) -> None:
    warm = row(-1.5, 1.9, engine="e", phase="warmup", output_tokens=3, event_us=[100_000, 800_000, 1_700_000])
    windows = points(make_run(tmp_path, [warm, *FIVE]), "llm_window")
    # Its tokens come at -1.4, -0.7 and 0.2 s; in the last of these seconds a turn is measured.
    assert by_time(windows, "tokens") == {-2: 1, -1: 1, **dict.fromkeys(range(10), 0), 0: 7, 1: 4, 2: 1, 9: 4}
    assert by_time(windows, "in_flight")[-2] == pytest.approx(0.5)
    assert by_time(windows, "measured_s")[-1] == 0
    assert [r["fields"]["phase"] for r in windows[:3]] == ["warmup", "warmup", "measure"]


TURNS = [
    ("e", 0, 0.2, 3.7, True),
    ("f", 1, 3.7, 7.3, True),
    ("f", 2, 7.4, 9.0, True),
    ("e", 3, 9.5, 11, True),
]
MANY = [
    row(
        start + 0.05 * n,
        end - start - 0.05 * n,
        engine=engine,
        turn=turn,
        block=turn // 2,
        output_tokens=9 + n,
        event_us=[1000 * k for k in range(50, 900, 30 + n)],
    )
    for engine, turn, start, end, _ in TURNS
    for n in range(5)
]


def test_over_a_run_the_seconds_are_the_summary(tmp_path: Path) -> None:
    run = whole_run(tmp_path, MANY, -1, 12, turns=TURNS, engines=[{"name": "e"}, {"name": "f"}])
    for engine, figures in compute(run)["concurrency"].items():
        for measurement in ("llm_window", "llm_window_aligned"):
            sums: dict[str, float] = defaultdict(float)
            for r in points(run, measurement, engine=engine):
                for name, value in r["fields"].items():
                    sums[name] += value if isinstance(value, float) else 0
            window = figures["window"]
            assert sums["measured_s"] == pytest.approx(window["seconds"])
            assert sums["tokens"] / sums["measured_s"] == pytest.approx(window["throughput_tokens_per_s"])
            assert sums["in_flight"] / sums["measured_s"] == pytest.approx(window["concurrency"])
            assert sums["completions"] == figures["counts"]["ok"] == 10
        summary = {r["tags"]["metric"]: r["fields"] for r in points(run, "run_summary", engine=engine)}
        for name in ("ttft_ms", "e2e_ms", "chunk_gap_ms"):
            for part in ("n", "mean", "p50", "p95", "p99"):
                assert summary[name][part] == figures[name][part]
            assert summary[name]["value"] == figures[name]["p50"]
        assert summary["throughput_tokens_per_s"]["value"] == window["throughput_tokens_per_s"]
        assert summary["failures"]["value"] == 0
        assert "scheduled_ttft_ms" not in summary


def test_turns_lie_over_each_other_from_the_start_of_the_run(tmp_path: Path) -> None:
    run = whole_run(tmp_path, MANY, -1, 12, turns=TURNS, engines=[{"name": "e"}, {"name": "f"}])
    rows = points(run, "llm_window_aligned")
    # Turns of 3.5, 3.6, 1.6 and 1.5 s; nanoseconds tell them apart.
    assert [(r["tags"]["engine"], r["time_ns"] - (T0 - S)) for r in rows] == [
        *[("e", k * S + 0) for k in range(4)],
        *[("e", k * S + 3) for k in range(2)],
        *[("f", k * S + 1) for k in range(4)],
        *[("f", k * S + 2) for k in range(2)],
    ]
    assert [r["fields"]["turn_s"] for r in rows[:4]] == [0, 1, 2, 3]
    assert len({(tuple(r["tags"].items()), r["time_ns"]) for r in rows}) == len(rows)


def test_workers_have_rows_of_their_own_whose_sums_are_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, [])
    for n, worker in enumerate(("w1", "w2")):
        lines = [orjson.dumps({**r, "worker": worker, "point_ns": k + 1}) for k, r in enumerate(FIVE[n::2])]
        run.worker_journal_path(worker).write_bytes(b"\n".join(lines) + b"\n")
    (run.path / "windows-w3.jsonl").write_bytes(orjson.dumps({"t_ns": T0, "worker": "w3"}) + b"\n")
    windows = points(run, "llm_window")
    tokens = {
        w: by_time([r for r in windows if r["tags"]["worker"] == w], "tokens") for w in ("w1", "w2", "w3")
    }
    # Requests 1, 3 and 5 are the first worker's, 2 and 4 the second's; the third sent none.
    assert [tokens["w1"][t] for t in (0, 1, 2, 9)] == [5, 0, 1, 4]
    assert [tokens["w2"][t] for t in (0, 1, 2, 9)] == [2, 4, 0, 0]
    assert set(tokens["w3"].values()) == {0}
    assert sum(r["fields"]["measured_s"] for r in windows) == pytest.approx(10)


def test_a_killed_run_gives_what_there_is(tmp_path: Path) -> None:
    run = make_run(tmp_path, FIVE, state="running", turns=())
    events = EventsWriter(run.events_path)
    events.append("turn_start", engine="e", turn=0, block=0, t_ns=T0, mono_ns=5)
    events.close()
    with open(run.journal_path, "ab") as f:
        f.write(b'{"engine": "e", "sent')
    windows = points(run, "llm_window")
    assert sum(r["fields"]["tokens"] for r in windows) == 5 + 4 + 1 + 2 + 8


def test_a_clock_that_is_set_makes_no_run_of_years(tmp_path: Path) -> None:
    run = make_run(tmp_path, FIVE, state="running")
    events = EventsWriter(run.events_path)
    events.append("run_start", t_ns=T0 - 40 * 365 * 86_400 * S, mono_ns=0)
    events.append("run_end", t_ns=T0 + 11 * S, mono_ns=20 * S)
    events.close()
    assert len(points(run, "llm_window")) == 10 + 21


def test_a_directory_of_telemetry_alone(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    Manifest(run="t").write(run.manifest_path)
    assert write_derived(run) == tmp_path / "derived.jsonl"
    assert (tmp_path / "derived.jsonl").read_bytes() == b""


def test_rebuilt_any_time_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    first = write_derived(run).read_bytes()
    assert write_derived(run).read_bytes() == first

    def broken(*_: Any) -> Any:
        yield b"half"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("loadgen.sinks.derive._lines", broken)
    with pytest.raises(StoreError, match=r"derived.jsonl cannot be written: No space left"):
        write_derived(run)
    assert (run.path / "derived.jsonl").read_bytes() == first
    assert not list(run.path.glob(".derived*"))


def test_each_engine_is_compared_with_the_other(tmp_path: Path) -> None:
    run = make_run(tmp_path, MANY, turns=TURNS, engines=[{"name": "e", "simulated": True}, {"name": "f"}])
    (ttft,) = points(run, "run_summary", engine="f", metric="ttft_ms")
    assert ttft["fields"]["baseline"] == "e"
    assert ttft["fields"]["ratio"] == pytest.approx(1)
    assert ttft["fields"]["blocks"] == 2
    assert "ratio_low" not in ttft["fields"]
    assert ttft["fields"]["better"] == "not decidable"
    assert ttft["fields"]["verdict"] == (
        "not decidable: an interval needs 6 complete blocks, there are 2 (simulated: e)"
    )
    assert ttft["fields"]["higher_is_better"] == ttft["fields"]["simulated"] == 0
    (speed,) = points(run, "run_summary", engine="e", metric="throughput_tokens_per_s")
    assert (speed["fields"]["higher_is_better"], speed["fields"]["simulated"]) == (1, 1)
    (concurrency,) = points(run, "run_summary", engine="e", metric="concurrency")
    assert not {"ratio", "better", "higher_is_better"} & concurrency["fields"].keys()


def test_every_figure_says_whether_it_may_be_believed(tmp_path: Path) -> None:
    enough = MANY * 2
    run = make_run(tmp_path, enough, turns=TURNS, engines=[{"name": "e"}, {"name": "f"}])
    assert {(r["fields"]["validity"], r["fields"]["validity_level"]) for r in points(run, "run_summary")} == {
        ("valid", 0)
    }
    assert not any("validity_reasons" in r["fields"] for r in points(run, "run_summary"))
    failing = [{**r, "outcome": "failed", "error": "reset"} if r["turn"] < 2 else r for r in enough]
    run = make_run(tmp_path, failing, turns=TURNS, engines=[{"name": "e"}, {"name": "f"}])
    (ttft,) = points(run, "run_summary", engine="f", metric="ttft_ms")
    assert (ttft["fields"]["validity"], ttft["fields"]["validity_level"]) == ("void", 2)
    assert ttft["fields"]["validity_reasons"].startswith("e: 10 requests of 20 failed (50.0 %); find out why")
    assert ttft["fields"]["better"] == "not decidable"
    assert ttft["fields"]["verdict"] == "not decidable: the run is void"


def test_the_schema_has_every_point(tmp_path: Path) -> None:
    run = whole_run(tmp_path, MANY, -1, 12, turns=TURNS, engines=[{"name": "e", "model": "m"}, {"name": "f"}])
    for measurement in (LLM_WINDOW, LLM_WINDOW_ALIGNED, RUN_SUMMARY):
        rows = points(run, measurement.name)
        assert rows
        assert {k for r in rows for k in r["fields"]} <= {f.name for f in measurement.fields}
        assert {k for r in rows for k in r["tags"]} <= {t.name for t in measurement.tags}


def test_where_memory_goes(tmp_path: Path) -> None:
    """1 GiB held by NVML's word; weights and KV cache by the log that the engine's settings name."""
    log = tmp_path / "vllm.log"
    log.write_text("Model loading took 0.25 GiB memory\nAvailable KV cache memory: 0.5 GiB\n")
    specs = [{"name": "e", "log": str(log)}, {"name": "f", "log": str(tmp_path / "gone.log")}]
    engines = [{"name": "e", "total_context": 1000}, {"name": "f"}]
    run = watched(make_run(tmp_path, MANY, turns=TURNS, engines=engines))
    manifest = run.manifest()
    manifest.settings["engines"] = specs
    manifest.write(run.manifest_path)
    run.engine_path.write_bytes(
        b"".join(
            orjson.dumps({"t_ns": T0 + k * S, "engine": "e", "kv_used_share": 0.1 + k / 100}) + b"\n"
            for k in range(11)
        )
    )
    (one,) = points(run, "engine_memory")
    assert one["tags"] == {"run": run.name, "scenario": "concurrency", "engine": "e"}
    assert one["fields"] == {
        "reserved_bytes": 2**30,
        "weights_bytes": 2**28,
        "kv_capacity_bytes": 2**29,
        "kv_used_bytes": pytest.approx(0.2 * 2**29, abs=1),
        "least_needed_bytes": pytest.approx(2**28 + 0.2 * 2**29 + 2**28, abs=1),
    }
    assert one["fields"].keys() == {f.name for f in ENGINE_MEMORY.fields}


def test_exact_points_take_the_place_of_provisional_ones(tmp_path: Path) -> None:
    run = make_run(tmp_path, engines=[{"name": "e", "model": "m 1"}])
    (second,) = [
        r for r in read_rows(write_derived(run)) if (r["measurement"], r["time_ns"]) == ("llm_window", T0 + S)
    ]
    (exact,) = derived_lines(second, RunContext.of(run))
    live = {"t_ns": T0 + S, "engine": "e", "worker": "local", "phase": "measure", "tokens": 3, "in_flight": 1}
    (provisional,) = window_lines(live, RunContext.of(run))
    series = [text.partition(" tokens=")[0] for text in (exact, provisional)]
    assert series[0] == series[1]
    assert exact.rpartition(" ")[2] == provisional.rpartition(" ")[2]
    assert "provisional=0" in exact
    assert "provisional=1" in provisional
