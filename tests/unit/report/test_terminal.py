"""What a person sees: 80 columns, no colour needed, nothing that a server sent gets to the terminal raw."""

import io
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console

from loadgen.report import summarise
from loadgen.report.plain import clean, number, percent
from loadgen.report.terminal import print_summaries
from loadgen.store import RunDir, Suite
from tests.unit.metrics.rows import FIVE, T0, row
from tests.unit.report.made import make_run, watched

BOTH = [{**r, "engine": name} for name in ("vllm", "llamacpp") for r in FIVE]
INFOS = [
    {"name": "vllm", "server": "vLLM", "version": "0.32.0", "model": "smollm2"},
    {"name": "llamacpp", "server": "llama.cpp", "version": "b10549", "model": "smollm2"},
]
TURNS = [("vllm", 0, 0.0, 10.0, True), ("llamacpp", 1, 0.0, 10.0, True)]


def shown(target: RunDir | Suite, width: int = 80, color: str | None = None) -> str:
    out = io.StringIO()
    system: Any = color
    console = Console(file=out, width=width, color_system=system, force_terminal=color is not None)
    print_summaries(summarise(target), console)
    return out.getvalue()


def line(text: str, label: str) -> str:
    (found,) = [row for row in text.splitlines() if row.strip().startswith(label)]
    return " ".join(found.split())


@pytest.fixture
def text(tmp_path: Path) -> str:
    rows = [{**r, "turn": 1} if r["engine"] == "llamacpp" else r for r in BOTH]
    return shown(make_run(tmp_path, rows, engines=INFOS, turns=TURNS, users=16, turn_requests=64))


def test_figures_are_where_they_belong(text: str) -> None:
    assert line(text, "TTFT ") == "TTFT ms 200.0 1,500 ~1,500 200.0 1,500 ~1,500"
    assert line(text, "chunk gap") == "chunk gap ms 200.0 1,000 ~1,000 200.0 1,000 ~1,000"
    assert line(text, "requests ok") == "requests ok 4 of 5 4 of 5"
    assert line(text, "failed ") == "failed 1 truncated 1 truncated"
    assert line(text, "throughput") == "throughput tok/s 1.60 1.60"
    assert line(text, "concurrency  ") == "concurrency 1.10 1.10"
    assert line(text, "TPOT") == "TPOT ms - -"
    assert line(text, "cached tokens") == "cached tokens not reported not reported"
    assert "llamacpp / vllm: TTFT p50 1.00" in text
    assert "16 users, 64 requests a turn" in text


def test_what_the_gpus_used(tmp_path: Path) -> None:
    text = shown(watched(make_run(tmp_path, FIVE)))
    assert line(text, "energy         J/token") == "energy J/token 250.0"
    assert line(text, "energy           J/req") == "energy J/req 1,333"
    assert line(text, "GPU power") == "GPU power W 400.0"
    assert line(text, "GPU memory") == "GPU memory GiB 1.00"
    nobodys = shown(watched(make_run(tmp_path, FIVE), engine="", gpus=2))
    assert line(nobodys, "GPU power") == "GPU power W 800.0"
    assert "GPU memory" not in nobodys
    assert "energy is that of all 2 GPUs" in " ".join(nobodys.split())


def test_no_ratio_to_an_engine_of_which_nothing_succeeded_and_failures_beside_the_others(
    tmp_path: Path,
) -> None:
    broken = [{**r, "outcome": "failed", "error": "truncated"} for r in FIVE]
    rows = [{**r, "engine": "vllm"} for r in broken] + [{**r, "engine": "llamacpp", "turn": 1} for r in FIVE]
    text = shown(make_run(tmp_path, rows, engines=INFOS, turns=TURNS))
    assert "llamacpp / vllm: no request of vllm succeeded\n" in text
    half = [{**r, "engine": "vllm"} for r in FIVE] + [{**r, "engine": "llamacpp", "turn": 1} for r in FIVE]
    for failed in (r for r in half if r["engine"] == "vllm" and r["outcome"] == "ok"):
        failed.update(outcome="failed", error="http_500")
        break
    text = shown(make_run(tmp_path / "b", half, engines=INFOS, turns=TURNS))
    assert " ".join(text.split()).count("llamacpp failed 1 of 5, vllm failed 2 of 5") == 1
    assert line(text, "failed ") == "failed 1 http_500, 1 truncated"


def test_prompts_of_a_file_are_not_said_to_have_a_length_that_was_not_used(tmp_path: Path) -> None:
    made = make_run(tmp_path, prompt_file="some/where/q.jsonl", salt="off", prompt_tokens=50, output_tokens=9)
    assert "prompts of q.jsonl without salt, 9 output tokens\n" in shown(made)


def test_it_fits_80_columns(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80


def test_rough_percentiles_and_a_bad_residual_are_explained(text: str) -> None:
    flat = " ".join(text.split())
    assert "~ p99 of fewer than 1,000 samples" in flat
    assert flat.count("Little's residual is 9.1") == 2  # each engine's, once
    assert "simulated" not in flat


@pytest.mark.parametrize(("running", "why"), [(9, "nobody else uses it"), (0, "holds requests back")])
def test_a_server_that_counts_otherwise(tmp_path: Path, running: int, why: str) -> None:
    text = shown(make_run(tmp_path, in_server=[(t + 0.5, running, 0) for t in range(10)]))
    assert line(text, "in the server").split()[-1] == str(number(float(running)))
    said = " ".join(text.split())
    assert said.count(f"the server counted {running and f'{running:.2f}'} requests where") == 1
    assert why in said


def test_every_table_of_simulated_engines_says_so(tmp_path: Path) -> None:
    suite = Suite.create(tmp_path)
    infos = [{**i, "simulated": True} for i in INFOS] + [{"name": "third", "simulated": True}]
    for scenario in ("single_user", "concurrency"):
        make_run(tmp_path, BOTH, scenario=scenario, suite=suite, engines=infos, turns=TURNS)
    text = shown(suite)
    tables = text.count("requests ok")
    assert tables == 4  # two runs, each with a table for two engines and one for the third
    assert text.count("· simulated engines") == tables
    assert text.count("this says nothing about real servers") == tables


def test_more_engines_than_fit_go_into_further_tables(tmp_path: Path) -> None:
    names = [f"engine{n}" for n in range(5)]
    rows = [{**r, "engine": name} for name in names for r in FIVE]
    run = make_run(tmp_path, rows, engines=[{"name": n} for n in names], turns=[])
    assert shown(run, 80).count("requests ok") == 3
    assert shown(run, 200).count("requests ok") == 1
    assert max(map(len, shown(run, 80).splitlines())) <= 80
    assert shown(run, 40).count("requests ok") == 5


EVIL = "\x1b[2J[bold red]boo[/] \u202egnp.exe\x07 \ud800"


def test_what_servers_say_is_data(tmp_path: Path) -> None:
    rows = [row(0, 1, engine="e", outcome="failed", error="in_stream", error_text=EVIL.replace("\ud800", ""))]
    engines = [{"name": "e", "server": EVIL, "model": EVIL, "version": "[/]"}]
    run = make_run(
        tmp_path, rows, engines=[{**e, **{k: clean(v) for k, v in e.items()}} for e in engines], notes=["[x]"]
    )
    text = shown(run)
    assert "[bold red]boo[/]" in text
    assert not any(c in text for c in "\x1b\x07\u202e")
    assert "note: [x]" in text


def test_clean() -> None:
    assert clean(EVIL) == "?[2J[bold red]boo[/] ?gnp.exe? ?"
    assert clean("a" * 1000) == "a" * 159 + "…"
    assert clean("one\r\ntwo\tthree") == "one two three"
    assert clean("naïve 漢字 🙂") == "naïve 漢字 🙂"


def test_an_interrupted_run_is_said_first(tmp_path: Path) -> None:
    run = make_run(tmp_path, state="running", turns=[("e", 0, 0.0, 10.0, False)])
    found = [r for r in shown(run).splitlines() if r.startswith("- ")]
    assert found[0].startswith("- interrupted run")
    assert any("INCOMPLETE" in r for r in found)


def test_optional_rows(tmp_path: Path) -> None:
    plain = shown(make_run(tmp_path, [row(0, 1, engine="e", event_us=[9, 10], ttfa_ms=0.009)]))
    assert "TTFA" not in plain  # the same as TTFT: nothing to say
    assert "scheduled" not in plain
    thinking = row(0, 1, engine="e", event_us=[9, 10], ttfa_ms=700.0, scheduled_ns=FIVE[0]["sent_ns"])
    more = shown(make_run(tmp_path, [thinking, row(engine="e", outcome="cancelled")]))
    assert line(more, "TTFA") == "TTFA ms 700.0 700.0 ~700.0"
    assert line(more, "cancelled") == "cancelled 1"
    assert "scheduled TTFT" in more


@pytest.mark.parametrize(
    ("value", "shown_as"),
    [(None, "-"), (0, "0"), (0.9999, "1.00"), (9.996, "10.0"), (999.96, "1,000"), (123456.7, "123,457")],
)
def test_number(value: float | None, shown_as: str) -> None:
    assert number(value) == shown_as


def test_percent_never_hides_a_small_share() -> None:
    assert [percent(v) for v in (0, 1e-9, 0.00123, 0.25)] == ["0 %", "< 0.01 %", "0.12 %", "25.0 %"]


def test_a_run_without_engines(tmp_path: Path) -> None:
    assert "no engine was measured" in shown(make_run(tmp_path, [], engines=[], turns=[]))


def test_colour_is_only_decoration(tmp_path: Path) -> None:
    from rich.text import Text

    run = make_run(tmp_path, BOTH, engines=INFOS, turns=TURNS)
    assert Text.from_ansi(shown(run, color="truecolor")).plain.split() == shown(run).split()


def ramped(tmp_path: Path) -> RunDir:
    """1, 2 and 4 users for 10, 10 and 10 s; two users do all that can be done."""
    rows = [
        row(t, 1.0, engine="e", event_us=[100_000 * u, 900_000], output_tokens=10)
        for start, u in ((0, 1), (10, 2), (20, 4))
        for t in range(start, start + 10)
        for _ in range(min(u, 2))
    ]
    run = make_run(tmp_path, rows, turns=[("e", 0, 0.0, 30.0, True)], shape="steps:1,2,4@10s", users=4)
    for at, users in ((0, 1), (10, 2), (20, 4)):
        event = {"kind": "users", "engine": "e", "turn": 0, "users": users, "settled": True}
        with open(run.events_path, "ab") as f:
            f.write(orjson.dumps({**event, "t_ns": T0 + at * 10**9, "mono_ns": at * 10**9}) + b"\n")
    return run


def test_a_run_whose_users_varied_has_a_table_by_users(tmp_path: Path) -> None:
    text = shown(ramped(tmp_path))
    assert "users by steps:1,2,4@10s, up to 4" in text
    words = [" ".join(found.split()) for found in text.splitlines()]
    assert "1 10.0 s 10 100.0 100.0 - 10.0 1.00" in words
    assert "2 10.0 s 20 200.0 200.0 - 20.0 2.00" in words
    assert "the number of users varied" in text
    assert "no knee was seen up to 4 users" in text
    assert max(map(len, text.splitlines())) <= 80
