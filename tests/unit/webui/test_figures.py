from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loadgen.record import CANCELLED, FAILED, RequestRecord
from loadgen.validity import Finding, Level, Validity
from loadgen.webui.figures import Figures, Limits, final_rows, shown


def record(engine: str = "a", **fields: Any) -> RequestRecord:
    known = {"ttft_ms": 100.0, "tpot_ms": 10.0, "e2e_ms": 400.0, "output_tokens": 31, "events": 31}
    return RequestRecord(engine=engine, **{**known, "read_lag_ms": 0.5, **fields})


def second(t: int, **fields: Any) -> dict[str, Any]:
    known = {"engine": "a", "worker": "local", "phase": "measure", "measured_s": 1.0, "tokens": 100}
    return {"t_ns": t * 10**9, "in_flight": 4, "loop_lag_ms": 0.1, "cpu_percent": 10.0, **known, **fields}


def one(figures: Figures) -> dict[str, Any]:
    return figures.rows()[0]


def test_of_measured_requests() -> None:
    figures = Figures("concurrency", ["a", "b"])
    for n in range(1, 101):
        figures.add(record(ttft_ms=float(n), tpot_ms=n / 10))
    figures.add(record(ttft_ms=9999.0, phase="warmup"))
    figures.add(record(ttft_ms=9999.0, outcome=CANCELLED))
    figures.add(record("stranger"))
    row = one(figures)
    assert [row[f"ttft_p{p}_ms"] for p in (50, 95, 99)] == [50.0, 95.0, 99.0]
    assert (row["tpot_p50_ms"], row["requests"], row["failed"]) == (5.0, 100, 0)
    empty = figures.rows()[1]
    assert (empty["engine"], empty["requests"], empty["ttft_p50_ms"]) == ("b", 0, None)
    assert (empty["tokens_per_s"], empty["goodput"]) == (None, None)


def test_tokens_of_whole_seconds() -> None:
    """A second in which the turn begins has tokens of the warm-up, too."""
    figures = Figures("s", ["a"])
    figures.second(second(1, measured_s=0.2, tokens=500))
    figures.second(second(2))
    figures.second(second(3, tokens=300))
    figures.second(second(4, phase="warmup", tokens=900, measured_s=0.0))
    assert one(figures)["tokens_per_s"] == 200
    figures.add(record(output_tokens=90, events=30))  # a chunk has three tokens, as speculative decoding does
    assert one(figures)["tokens_per_s"] == 600


def test_workers_share_a_second() -> None:
    figures = Figures("s", ["a"])
    for worker in ("w0", "w1"):
        figures.second(second(1, worker=worker, measured_s=0.5, workers=2))
    assert one(figures)["tokens_per_s"] == 200
    assert one(figures)["in_flight"] == 8
    figures.second(second(9, worker="w0", measured_s=0.5, workers=2))
    assert one(figures)["in_flight"] == 4  # w1 has not been heard of for eight seconds


@pytest.mark.parametrize(
    ("slo", "words", "good"),
    [
        ((), "TTFT < 500 ms", 2),
        (("ttft<150ms", "tpot<=20ms"), "TTFT < 150 ms, TPOT <= 20 ms", 1),
        (("ttft_p95<0.05s",), "TTFT < 50 ms", 0),
        (("throughput>300",), "TTFT < 500 ms", 2),  # nothing that a single request could keep
        (("nonsense",), "TTFT < 500 ms", 2),
    ],
)
def test_goodput(slo: tuple[str, ...], words: str, good: int) -> None:
    figures = Figures("s", ["a"], slo)
    assert figures.good_means == words
    figures.add(record(ttft_ms=100.0, tpot_ms=20.0))
    figures.add(record(ttft_ms=499.9, tpot_ms=20.1))
    figures.add(record(ttft_ms=10.0, outcome=FAILED))
    figures.add(record(ttft_ms=600.0))
    assert one(figures)["goodput"] == good / 4


def test_limits_of_all_figures_of_a_request() -> None:
    limits = Limits.of(["decode>50", "scheduled_ttft<120ms", "tpot<20ms"])
    assert limits.met(record(send_lag_ms=10.0))
    assert not limits.met(record(send_lag_ms=30.0))
    assert limits.met(record(tpot_ms=None))  # one token: it has neither
    assert not limits.met(record(tpot_ms=25.0))
    assert not limits.met(record(ttft_ms=None))


def test_doubts_while_it_runs() -> None:
    figures = Figures("s", ["a"])
    for n in range(40):
        figures.add(record(outcome=FAILED if n == 0 else "ok"))
    assert (one(figures)["validity"], one(figures)["reasons"]) == ("suspect", ["2.5 % failed"])
    for n in range(60):
        figures.second(second(n, cpu_percent=99.0, loop_lag_ms=200.0))
    figures.doubts.append("worker w1 was lost")
    assert one(figures)["validity"] == "void"
    assert one(figures)["reasons"] == [
        "the generator uses 99 % of a core",
        "worker w1 was lost",
        "2.5 % failed",
        "the generator is 200.0 ms late",
    ]
    assert shown(one(figures))["validity"] == "void so far: the generator uses 99 % of a core"


def test_classes_have_rows_of_their_own() -> None:
    figures = Figures("mixed", ["a"])
    figures.add(record(ttft_ms=10.0, traffic_class="interactive"))
    figures.add(record(ttft_ms=900.0, traffic_class="long"))
    rows = figures.rows()
    assert [(r["class"], r["requests"], r["ttft_p50_ms"]) for r in rows] == [
        ("", 2, 10.0),
        ("interactive", 1, 10.0),
        ("long", 1, 900.0),
    ]
    assert [shown(r)["scenario"] for r in rows] == ["mixed", "mixed: interactive", "mixed: long"]
    long = {"counts": {"requests": 7, "failed": 0}, "window": {}, "ttft_ms": {"p50": 800.0}}
    engine = {**long, "classes": {"long": long}}
    done = final_rows(SimpleNamespace(engines={"a": engine}, validity=None), rows)
    assert [r["requests"] for r in done] == [7, 1, 7]  # interactive is in no complete turn


def test_when_it_is_over_the_summary_counts() -> None:
    figures = Figures("s", ["a", "gone"])
    figures.add(record())
    counts = {"requests": 64, "failed": 2}
    engine = {"counts": counts, "window": {"throughput_tokens_per_s": 321.0}, "ttft_ms": {"p50": 7.0}}
    finding = Finding("failures", Level.SUSPECT, "3 % failed")
    summary = SimpleNamespace(engines={"a": engine}, validity=Validity(Level.SUSPECT, (finding,)))
    row, other = final_rows(summary, figures.rows())
    assert (row["requests"], row["failed"], row["tokens_per_s"], row["ttft_p50_ms"]) == (64, 2, 321.0, 7.0)
    assert (row["validity"], row["reasons"], row["in_flight"]) == ("suspect", ["3 % failed"], 0)
    assert shown(row)["validity"] == "suspect: 3 % failed"
    assert shown(row)["failures"] == "2 (3.1 %)"
    assert other["validity"] == "suspect"
