"""A comparison printed: the same numbers on a terminal, in Markdown and CSV, whatever names there are."""

import csv
import io
from typing import Any

import pytest
from rich.console import Console

from loadgen.compare.assess import Assessment, judged
from loadgen.compare.facts import EngineFacts
from loadgen.compare.verdict import NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.report.comparison import markdown, print_assessment, write_csv
from loadgen.validity.finding import Level
from tests.unit.compare.compared import DECODE, E2E, THROUGHPUT, TTFT, comparison, level, row, seen

GIB = 2**30
INFOS = {
    "a": {"server": "vLLM", "version": "0.32.0", "model": "Qwen3-8B-FP8"},
    "b": {"server": "llama.cpp", "version": "b9", "model": "q8b", "facts": {"model_ftype": "Q4_K - Medium"}},
}


def some(**more: Any) -> Assessment:
    rows = [
        row(TTFT, 0.5, value=90.25, baseline_value=180.5),
        row(TTFT, 0.5, NOT_DECIDABLE, statistic="p99", rough=True, low=None, high=None, headline=False),
        row(DECODE, 1.01, NO_DIFFERENCE),
        row("headers_ms", 1.5, headline=False),
        row(THROUGHPUT, 1.81, value=18_100.0, baseline_value=10_000.0),
    ]
    memory = {
        "reserved": {"bytes": 43 * GIB, "source": "NVML: peak of its processes"},
        "kv_capacity": {"tokens": 65_536, "source": "its log"},
        "missing": ["weights: the log tells"],
    }
    facts = {
        "a": EngineFacts(1, 50.0, 10_000.0, 2, "as given", memory, {"joules_per_output_token": 0.25}),
        "b": EngineFacts(1, 50.0, 18_100.0, 2, "as given"),
    }
    return judged([comparison(*rows, **{"infos": INFOS, "seen": facts, **more})], 1.8)


def terminal(assessment: Assessment, *, width: int = 80, everything: bool = False) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    print_assessment(assessment, console, everything=everything)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_terminal_of_80_columns() -> None:
    text = terminal(some())
    assert max(len(line) for line in text.splitlines()) <= 80
    printed = lines(text)
    assert "verdict: b is better than a in TTFT 0.50 x (0.49 to 0.51); no difference that" in printed
    assert "TTFT mean ms 90.2 180.5 0.50 0.49 to 0.51 b" in printed
    assert "p99 ms ~50.0 ~100.0 0.50 - not decidable" in printed
    assert "decode mean tok/s 101.0 100.0 1.01 0.99 to 1.03 no difference" in printed
    assert "throughput tok/s 18,100 10,000 1.81 1.77 to 1.85 b" in printed
    assert "reserved, GiB 43.0 -" in printed
    assert "KV capacity, GiB - (65,536 tokens) -" in printed
    assert "energy, J/token 0.250 -" in printed
    # 1.80 an hour, two GPUs, 10,000 tokens/s: 3.60 for 36 million tokens.
    assert "cost of 1M tokens 0.100 0.055" in printed
    assert "cost of a token: b / a 0.55 (0.54 to 0.56), at 1.8 a GPU hour" in printed
    assert "not known of a: weights (its log may tell: --engine-log)" in printed
    assert "b: llama.cpp b9, q8b, Q4_K_M" in printed
    assert not any(line.startswith("head ") for line in printed)
    assert "head mean ms 150.0 100.0 1.50 1.47 to 1.53 a" in lines(terminal(some(), everything=True))


def test_markdown_has_the_same_numbers() -> None:
    text = markdown(some())
    assert "**b is better than a in TTFT 0.50 x \\(0.49 to 0.51\\);" in text
    assert "| **TTFT mean, ms** | 90.2 | 180.5 | 0.50 | 0.49 to 0.51 | b |" in text
    assert "| TTFT p99, ms | \\~50.0 | \\~100.0 | 0.50 | - | not decidable |" in text
    assert "Validity: **valid**" in text
    assert "- one user, interactive: take b;" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_csv_has_numbers_in_full_and_all_rows() -> None:
    out = io.StringIO()
    write_csv(some(simulated=["b"]).comparisons, out)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [(r["figure"], r["statistic"]) for r in rows] == [
        (TTFT, "mean"),
        (TTFT, "p99"),
        (DECODE, "mean"),
        ("headers_ms", "mean"),
        (THROUGHPUT, "value"),
    ]
    assert (rows[0]["value"], rows[0]["low"], rows[0]["better"], rows[0]["validity"]) == (
        "90.25",
        "0.49",
        "b",
        "valid",
    )
    assert (rows[1]["low"], rows[1]["rough"], rows[1]["needed"], rows[1]["simulated"]) == (
        "",
        "True",
        "20",
        "b",
    )


def test_several_scenarios_end_with_all_of_them() -> None:
    both = judged(
        [
            comparison(row(TTFT, 0.5), seen=seen(1, 50)),
            comparison(row(THROUGHPUT, 0.5), scenario="concurrency", seen=seen(16, 50)),
        ],
        None,
    )
    text = terminal(both)
    assert "b is ahead in single_user; a is ahead in concurrency" in lines(text)
    assert "- both behind a gateway: b for one user, interactive; a for many users at once" in lines(text)
    assert "### Over all" in markdown(both)


def test_what_differs_between_two_runs_comes_first() -> None:
    differing = [
        {"what": "a: quantisation", "a": "FP8", "b": None, "matters": True},
        {"what": "a: prefix cache", "a": True, "b": False, "matters": True},
        {"what": "blocks", "a": 6, "b": 12, "matters": False},
    ]
    apart = some(runs=["one", "two"], differences=differing, cannot_exclude=["that the machine changed"])
    printed = lines(terminal(apart))
    assert printed.index("a: quantisation FP8 -") < printed.index("validity: valid")
    assert "a: prefix cache yes no" in printed
    assert "differs, matters less: blocks" in printed
    assert "- that the machine changed" in printed
    assert printed[:2] == ["A: one", "B: two"]
    text = markdown(apart)
    assert text.index("| a: quantisation | FP8 | - |") < text.index("**b is better")
    same = some(runs=["one", "two"])
    assert "the runs differ in nothing that is recorded" in lines(terminal(same))


@pytest.mark.parametrize("of", [Level.SUSPECT, Level.VOID])
def test_doubts_are_printed_with_their_reasons(of: Level) -> None:
    doubtful = some(validity=level(of))
    text = terminal(doubtful)
    assert f"validity: {of.word}" in lines(text)
    assert f"- {of.word}: a: no turn is complete; let the run go on" in lines(text)
    assert f"- {of.word}: a: no turn is complete; let the run go on" in markdown(doubtful)
    assert ("no verdict: the run is void" in text) == (of is Level.VOID)


def test_simulated_engines_are_said_to_be() -> None:
    fake = some(simulated=["a", "b"])
    expected = "simulated engines (a, b): this says nothing about real servers"
    assert expected in lines(terminal(fake))
    assert "b, a simulated" in " ".join(lines(terminal(fake)))
    assert "simulated engines \\(a, b\\)" in markdown(fake)


def test_nothing_to_compare() -> None:
    alone = judged([comparison(engines=["a"], baseline="a")], None)
    assert "nothing to compare: one engine, and one run" in lines(terminal(alone))
    assert "Nothing to compare" in markdown(alone)


HOSTILE = "\x1b[31m[bold]<script>alert(1)</script> | `x` @team\nnext"


def test_texts_of_servers_stay_texts() -> None:
    infos = {"a": {"server": HOSTILE, "model": HOSTILE}, "b": {}}
    differing = [{"what": "model", "a": HOSTILE, "b": 1, "matters": True}]
    evil = some(infos=infos, differences=differing, runs=["one", HOSTILE], cannot_exclude=[HOSTILE])
    text = terminal(evil)
    assert "\x1b" not in text
    assert "[bold]" in text
    in_markdown = markdown(evil)
    assert "\x1b" not in in_markdown
    assert "<script" not in in_markdown.replace("\\<script", "")
    assert " | `" not in in_markdown
    assert "\\@team" in in_markdown
    out = io.StringIO()
    write_csv(some(scenario="=1+1").comparisons, out)
    assert next(csv.DictReader(io.StringIO(out.getvalue())))["scenario"] == "'=1+1"


def test_long_names_fold_and_stay_in_80_columns() -> None:
    long = "an-engine-with-a-name-of-64-characters-as-they-may-be-at-most-64"
    wide = judged([comparison(row(TTFT, 0.5, engine=long), row(E2E, 0.5, engine=long), seen={})], None)
    assert max(len(line) for line in terminal(wide).splitlines()) <= 80
