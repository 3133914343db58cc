"""Traffic classes are compared each by itself, beside the whole."""

import io
import json
import re

import pytest
from rich.console import Console

from loadgen.compare.assess import assess
from loadgen.compare.runs import compare_target
from loadgen.report.html.page import page
from loadgen.report.html.results import results_of
from loadgen.report.summary import classes, summarise_run
from loadgen.report.terminal import print_summaries
from loadgen.sinks.derive import write_derived
from loadgen.slo.check import check_run
from loadgen.slo.objectives import parse_slo
from loadgen.store import StoreError
from tests.unit.metrics.rows import T0
from tests.unit.report.made import make_run

S = 10**9
BLOCKS = 6
# TTFT in ms by engine and class: b is twice as slow with short requests, and twice as fast with long ones.
TTFT = {("a", "short"): 100.0, ("b", "short"): 200.0, ("a", "long"): 800.0, ("b", "long"): 400.0}


def rows():
    for block in range(BLOCKS):
        for k, engine in enumerate("ab"):
            turn = 2 * block + k
            for n, kind in enumerate(("short", "short", "short", "long")):
                ttft = TTFT[engine, kind] + block
                yield {
                    "run": "r",
                    "scenario": "mixed",
                    "engine": engine,
                    "turn": turn,
                    "block": block,
                    "traffic_class": kind,
                    "pair": 4 * block + n,
                    "point_ns": T0 + turn * 10 * S + n,
                    "sent_ns": T0 + turn * 10 * S + n,
                    "ttft_ms": ttft,
                    "e2e_ms": ttft + 90,
                    "complete_ms": ttft + 90,
                    "output_tokens": 10,
                    "prompt_tokens": 2000 if kind == "long" else 50,
                    "event_us": [int(ttft * 1000) + 10_000 * i for i in range(10)],
                }


@pytest.fixture
def run(tmp_path):
    turns = [("ab"[t % 2], t, 10.0 * t, 10.0 * t + 2, True) for t in range(2 * BLOCKS)]
    engines = ({"name": "a"}, {"name": "b"})
    return make_run(tmp_path, rows(), scenario="mixed", engines=engines, turns=turns, users=4)


def test_the_summary_has_each_class(run):
    summary = summarise_run(run)
    found = classes(summary.engines)
    assert list(found) == ["short", "long"]
    for kind, n in (("short", 18), ("long", 6)):
        for engine, figures in found[kind].items():
            assert figures["counts"]["ok"] == n
            assert figures["ttft_ms"]["mean"] == pytest.approx(TTFT[engine, kind] + 2.5)
            # 12 turns of 2 s, 6 of each engine
            assert figures["window"]["throughput_tokens_per_s"] == pytest.approx(n * 10 / 12)
    for engine in "ab":
        whole = summary.engines[engine]
        parts = [found[kind][engine]["window"] for kind in found]
        assert sum(p["tokens"] for p in parts) == whole["window"]["tokens"] == 240
        assert sum(p["concurrency"] for p in parts) == pytest.approx(whole["window"]["concurrency"])


def test_each_class_is_compared_with_itself(run):
    whole, short, long = compare_target(run)
    assert [c.scenario for c in (whole, short, long)] == ["mixed", "mixed: short", "mixed: long"]
    assert short.row("b", "ttft_ms").better == "a"
    assert long.row("b", "ttft_ms").better == "b"
    assert short.row("b", "ttft_ms").ratio == pytest.approx(2.0, rel=0.03)
    assert long.row("b", "ttft_ms").ratio == pytest.approx(0.5, rel=0.03)
    # The mix gives each class its share: only the whole has a throughput.
    assert whole.row("b", "throughput_tokens_per_s") is not None
    assert short.row("b", "throughput_tokens_per_s") is None


def test_what_it_says_for_use_names_the_class(run):
    found = assess(run)
    assert [o.title for o in found.outcomes] == [
        "many users at once (4 users)",
        "many users at once (short, 4 users)",
        "many users at once (long, 4 users)",
    ]
    assert [o.better for o in found.outcomes][1:] == ["a", "b"]


def test_two_runs_made_apart_compare_the_classes_that_both_have(run, tmp_path):
    scenarios = [c.scenario for c in compare_target(run, run)]
    assert scenarios == ["mixed", "mixed: short", "mixed: long"]


def test_objectives_of_one_class(run):
    slo = parse_slo(["ttft_mean<300ms"])
    one = check_run(run, slo, traffic_class="short")
    assert (one.scenario, {name: j[0].value for name, j in one.engines.items()}) == (
        "mixed: short",
        {"a": pytest.approx(102.5), "b": pytest.approx(202.5)},
    )
    with pytest.raises(StoreError, match="has no traffic class 'x': it has short, long"):
        check_run(run, slo, traffic_class="x")


def test_the_database_gets_each_class_as_a_scenario(run):
    points = [json.loads(line) for line in write_derived(run).read_text().splitlines()]
    own = [p for p in points if p["measurement"] == "run_summary" and p["tags"]["metric"] == "ttft_ms"]
    tags = [(p["tags"]["scenario"], p["tags"].get("class"), p["tags"]["engine"]) for p in own]
    assert sorted(tags, key=str) == sorted(
        [
            *(("mixed", None, e) for e in "ab"),
            *((f"mixed: {kind}", kind, e) for kind in ("short", "long") for e in "ab"),
        ],
        key=str,
    )
    long = next(p for p in own if p["tags"].get("class") == "long" and p["tags"]["engine"] == "b")
    assert long["fields"]["better"] == "b"


def test_the_report_has_a_table_for_each(run):
    text = page(results_of([run]), "")
    head, *classes = re.split(r"<h4>(?:short|long)</h4>", text)
    assert "Traffic classes" in head
    assert len(classes) == 2
    assert all("Every figure compared with a" in part for part in classes)


def test_the_terminal_has_a_table_for_each(run):
    console = Console(width=80, file=io.StringIO())
    print_summaries([summarise_run(run)], console)
    _, *classes = re.split(r"class (?:short|long)", console.file.getvalue())
    assert len(classes) == 2
    for label in ("requests ok", "TTFT", "end to end", "throughput", "prompt tokens"):
        assert all(label in part for part in classes)
