"""`loadgen compare` on run directories: what it prints, in which shape, and its exit code."""

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from loadgen.cli import compare, values
from loadgen.store import RunDir, Suite
from tests.unit.metrics.rows import T0, row
from tests.unit.report.made import S, make_run

LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "enginelog"
Capture = pytest.CaptureFixture[str]


def run(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    return compare.execute(parser.parse_args(argv))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def two_engines(
    runs_dir: Path, *, suite: Suite | None = None, factor: float = 2.0, names: str = "ab", **more: Any
) -> RunDir:
    """Six blocks, A B B A ...: b takes `factor` of a's times, give or take a little. A turn is 20 s."""
    rows, turns = [], []
    for turn in range(6 * len(names)):
        block, engine = turn // len(names), names[(turn + turn // 2) % 2] if len(names) > 1 else names
        scale = (factor if engine == "b" else 1.0) * (1 + 0.01 * (turn % 3))
        events = [round(scale * us) for us in (100_000, 200_000, 300_000, 400_000)]
        rows += [
            row(
                turn * 20 + k,
                scale / 2,
                engine=engine,
                event_us=events,
                output_tokens=4,
                prompt_tokens=50,
                tpot_ms=scale * 100,
                turn=turn,
                block=block,
                pair=10 * block + k,
            )
            for k in range(10)
        ]
        turns.append((engine, turn, turn * 20.0, turn * 20.0 + 20, True))
    settings = {"users": 1, "turn_requests": 10, "seed": 1, "prompt_tokens": 50, **more}
    return make_run(
        runs_dir,
        rows,
        suite=suite,
        scenario=settings.pop("scenario", "single_user"),
        engines=settings.pop("engines", [{"name": n} for n in names]),
        turns=turns,
        **settings,
    )


def watched(made: RunDir) -> None:
    """A GPU on which a holds 43.8 GiB and b 13.7, as vLLM and llama.cpp did on an H200; 400 W and 300 W."""
    held = {"a": 47_043_313_664, "b": 14_719_909_888}
    joules = 0.0
    with open(made.gpu_path, "wb") as f:
        for t in range(-1, 242):
            turn = max(t, 0) // 20
            joules += 400.0 if "ab"[(turn + turn // 2) % 2] == "a" else 300.0
            processes = [{"pid": n, "memory_bytes": m, "engine": e} for n, (e, m) in enumerate(held.items())]
            at = {"kind": "sample", "t_ns": T0 + t * S, "host": "h", "gpu": 0, "source": "nvml"}
            f.write(orjson.dumps({**at, "energy_j": joules, "processes": processes}) + b"\n")


def test_two_engines_of_a_run(tmp_path: Path, capsys: Capture) -> None:
    two_engines(tmp_path / "runs")
    assert run("latest") == 0
    out = capsys.readouterr().out
    assert "verdict: a is better than b in TTFT" in out
    assert "one user, interactive: take a" in out


def test_json_has_everything(tmp_path: Path, capsys: Capture) -> None:
    made = two_engines(tmp_path / "runs", engines=[{"name": "a", "total_context": 245_200}, {"name": "b"}])
    watched(made)
    log = LOGS / "vllm_h200.log"
    assert run("latest", "--json", "--gpu-hour", "3.6", "--engine-log", f"a={log}") == 0
    found = json.loads(capsys.readouterr().out)
    (one,) = found["comparisons"]
    assert (one["baseline"], one["engines"]) == ("a", ["a", "b"])
    ttft = next(r for r in one["rows"] if (r["figure"], r["statistic"]) == ("ttft_ms", "mean"))
    assert (ttft["answer"], ttft["better"]) == ("better", "a")
    assert ttft["low"] <= 2 <= ttft["high"]
    # 43.8 GiB held, 33.67 of them cache, of which one request of 54 tokens used 54 / 245,200.
    memory = one["memory"]["a"]
    assert memory["reserved"]["bytes"] == 47_043_313_664
    assert memory["least_needed"]["bytes"] == pytest.approx(
        47_043_313_664 - 33.67 * 2**30 * (1 - 54 / 245_200), rel=1e-6
    )
    assert "least_needed" not in one["memory"]["b"]
    # 40 tokens a turn of 20 s are 2 tokens/s; one GPU at 3.6 an hour is 0.001 a second.
    assert one["cost"]["a"]["per_million_output_tokens"] == pytest.approx(500)
    assert one["cost"]["a"]["gpus_source"] == "GPUs with its processes"
    assert one["energy"]["a"]["joules_per_output_token"] == pytest.approx(200, rel=0.05)
    assert one["energy"]["b"]["joules_per_output_token"] == pytest.approx(150, rel=0.05)
    assert one["verdict"]["pairs"][0]["better"] == "a"
    assert found["overall"]["verdicts"][0]["better"] == "a"
    assert found["overall"]["advice"][0]["because"][0]["figure"] == "ttft_ms"


def test_the_log_of_a_start_command_is_found_in_the_run(tmp_path: Path, capsys: Capture) -> None:
    made = two_engines(tmp_path / "runs")
    (made.path / "engine-b.log").write_text((LOGS / "llamacpp_verbose.log").read_text())
    assert run("latest", "--json") == 0
    memory = json.loads(capsys.readouterr().out)["comparisons"][0]["memory"]
    assert memory["b"]["weights"] == {"bytes": round(92.10 * 2**20), "source": "its log"}
    assert "a" not in memory


def test_the_other_engine_as_baseline_and_a_margin(tmp_path: Path, capsys: Capture) -> None:
    two_engines(tmp_path / "runs", factor=1.1)
    assert run("latest", "--json", "--baseline", "b", "--margin", "20%") == 0
    (one,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (one["baseline"], one["margin"]) == ("b", 1.2)
    assert one["verdict"]["pairs"][0]["answer"] == "no difference"


def test_csv_to_a_file_and_markdown(tmp_path: Path, capsys: Capture) -> None:
    two_engines(tmp_path / "runs")
    assert run("latest", "--csv", "rows.csv") == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert {r["engine"] for r in rows} == {"b"}
    assert run("latest", "--csv", "-") == 0
    assert capsys.readouterr().out.startswith("runs,scenario,")
    assert run("latest", "--markdown") == 0
    assert capsys.readouterr().out.startswith("### single\\_user\n")


def test_two_runs(tmp_path: Path, capsys: Capture) -> None:
    before = two_engines(tmp_path / "runs")
    after = two_engines(tmp_path / "runs", factor=1.0, users=2)
    assert run(before.name, after.name) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"A: {before.name}\nB: {after.name}\ndiffers, and matters")
    assert "users 1 2" in " ".join(out.split())
    assert "b (B) is better than b (A)" in " ".join(out.split())


def test_of_two_runs_each_has_its_log(tmp_path: Path, capsys: Capture) -> None:
    before, after = (two_engines(tmp_path / "runs").name for _ in range(2))
    logs = [
        "--engine-log",
        f"b={LOGS / 'vllm_h200.log'}",
        "--engine-log",
        f"b={LOGS / 'llamacpp_verbose.log'}",
    ]
    assert run(before, after, "--json", *logs, "--gpus", "b=2", "--gpus", "b=4", "--gpus", "1") == 0
    (one,) = json.loads(capsys.readouterr().out)["comparisons"]
    weights = {engine: of["weights"]["bytes"] for engine, of in one["memory"].items()}
    assert weights == {"b (A)": round(7.26 * 2**30), "b (B)": round(92.10 * 2**20)}
    gpus = {engine: of["gpus"] for engine, of in one["cost"].items()}
    assert gpus == {"a (A)": 1, "a (B)": 1, "b (A)": 2, "b (B)": 4}
    # One log is that of the first run that has the engine.
    assert run(before, after, "--json", *logs[:2]) == 0
    assert list(json.loads(capsys.readouterr().out)["comparisons"][0]["memory"]) == ["b (A)"]


def test_a_suite_has_a_verdict_over_all(tmp_path: Path, capsys: Capture) -> None:
    suite = Suite.create(tmp_path / "runs")
    two_engines(tmp_path / "runs", suite=suite)
    two_engines(tmp_path / "runs", suite=suite, factor=0.5, users=16, scenario="concurrency")
    assert run("latest", "--gpus", "2") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "b is ahead in concurrency; a is ahead in single_user" in out
    assert "both behind a gateway: a for one user, interactive; b for many users at once (16 users)" in out


def test_a_killed_run_of_no_complete_turn_gets_no_verdict(tmp_path: Path, capsys: Capture) -> None:
    rows = [row(0, 1, engine=e, event_us=[1000, 2000], turn=n) for n, e in enumerate("ab")]
    turns = [("a", 0, 0.0, 1.0, False), ("b", 1, 0.0, 1.0, False)]
    make_run(tmp_path / "runs", rows, engines=[{"name": "a"}, {"name": "b"}], turns=turns, state="running")
    assert run("latest") in (0, 1)
    captured = capsys.readouterr()
    assert "is better" not in captured.out
    assert "void" in captured.out or "nothing" in captured.err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["nope"], "there is no run 'nope'"),
        (["latest", "--baseline", "c"], "has no engine 'c'"),
        (["latest", "--engine-log", "a=nowhere.log"], "nowhere.log cannot be read"),
        (["latest", "--engine-log", "c=nowhere.log"], "no engine is called 'c' here; there are a, b"),
        (["latest", "--gpus", "c=2"], "no engine is called 'c' here; there are a, b"),
        (["latest", "--csv", "no/such/folder.csv"], "the comparison cannot be written"),
    ],
)
def test_mistakes_are_a_sentence(tmp_path: Path, capsys: Capture, argv: list[str], sentence: str) -> None:
    two_engines(tmp_path / "runs")
    assert run(*argv) == 1
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_one_engine_has_nothing_to_be_compared_with(tmp_path: Path, capsys: Capture) -> None:
    make_run(tmp_path / "runs")
    assert run("latest") == 1
    assert "has one engine or none, so there is nothing to compare it with" in capsys.readouterr().err


def test_two_runs_without_a_pair_of_engines(capsys: Capture) -> None:
    one = two_engines(Path("runs"), names="a")
    none = make_run(Path("runs"), (), engines=(), turns=())
    assert run(one.name, none.name) == 1
    assert f"no engine of {one.name} has a counterpart in {none.name}" in capsys.readouterr().err


def test_an_engine_that_dropped_out_of_a_suite(capsys: Capture) -> None:
    """A sweep's later steps may be without the baseline: it is compared where it was measured."""
    suite = Suite.create(Path("runs"))
    two_engines(Path("runs"), suite=suite)
    two_engines(Path("runs"), suite=suite, names="bc", scenario="later")
    assert run(suite.name, "--baseline", "a", "--json") == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [c["baseline"] for c in found] == ["a", "b"]
    assert run(suite.name, "--baseline", "d") == 1
    assert "there is no engine 'd' here; there are a, b, c" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["--margin", "0.05"],
        ["--margin", "many"],
        ["--margin", "101%"],
        ["--gpu-hour", "0"],
        ["--gpu-hour", "free"],
        ["--gpus", "none"],
        ["--gpus", "a=0"],
        ["--engine-log", "vllm.log"],
        ["--json", "--markdown"],
    ],
)
def test_flags_that_can_not_be_meant(argv: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("latest", *argv)
    assert stopped.value.code == 2


@pytest.mark.parametrize(("text", "factor"), [("5%", 1.05), ("5", 1.05), ("7.5 %", 1.075)])
def test_margins(text: str, factor: float) -> None:
    assert values.margin(text) == pytest.approx(factor)


def test_all_pairs(tmp_path: Path, capsys: Capture) -> None:
    rows, turns = [], []
    for k in range(18):
        block, engine = k // 3, "abc"[k % 3]
        turn = 2 * block + (engine == "b")
        scale = {"a": 1.0, "b": 2.0, "c": 4.0}[engine] * (1 + 0.01 * (block % 3))
        events = [round(scale * us) for us in (100_000, 400_000)]
        rows += [
            row(k * 20 + n, scale, engine=engine, event_us=events, output_tokens=2, turn=turn, block=block)
            for n in range(4)
        ]
        turns.append((engine, turn, k * 20.0, k * 20.0 + 20, True))
    found = make_run(tmp_path, rows, turns=turns, users=1, engines=[{"name": n} for n in "abc"])
    assert run(str(found.path), "--all-pairs", "--json") == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    ttft = {
        (r["engine"], r["baseline"]): r["ratio"]
        for r in comparison["rows"]
        if (r["figure"], r["statistic"]) == ("ttft_ms", "mean")
    }
    assert ttft == {("b", "a"): pytest.approx(2), ("c", "a"): pytest.approx(4), ("c", "b"): pytest.approx(2)}
    sentences = [o["sentence"] for o in comparison["verdict"]["pairs"]]
    assert [s.split(" in ")[0] for s in sentences] == [
        "a is better than b",
        "a is better than c",
        "b is better than c",
    ]
    assert run(str(found.path), "--all-pairs") == 0
    out = capsys.readouterr().out
    assert "verdict: b is better than c" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(str(found.path), str(found.path), "--all-pairs") == 2
    assert "one run or suite" in capsys.readouterr().err
