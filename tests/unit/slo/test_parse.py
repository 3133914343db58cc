"""What people write, what it means, and what they are told of a mistake."""

from __future__ import annotations

import re

import pytest

from loadgen.config import ConfigError
from loadgen.slo import PRESETS, parse_objective, parse_slo


@pytest.mark.parametrize(
    ("text", "figure", "statistic", "op", "limit"),
    [
        ("ttft_p95<500ms", "ttft_ms", "p95", "<", 500),
        (" ttft_p95 <= 0.5 s ", "ttft_ms", "p95", "<=", 500),
        ("ttft_ms_p95<500", "ttft_ms", "p95", "<", 500),
        ("tpot_p99.9<900us", "tpot_ms", "p99.9", "<", 0.9),
        ("e2e_mean<10s", "e2e_ms", "mean", "<", 10_000),
        ("first_event_median<1s", "first_event_ms", "p50", "<", 1000),
        ("decode_p5>30tok/s", "decode_tokens_per_s", "p5", ">", 30),
        ("throughput>=300", "throughput_tokens_per_s", "value", ">=", 300),
        ("requests>5/s", "requests_per_s", "value", ">", 5),
        ("energy<.4J", "joules_per_output_token", "value", "<", 0.4),
        ("failures<1%", "failures", "value", "<", 0.01),
        ("failures<=0", "failures", "value", "<=", 0),
        ("goodput>0.99", "goodput", "value", ">", 0.99),
        ("goodput>99%", "goodput", "value", ">", 0.99),
        ("goodput>12req/s", "goodput_per_s", "value", ">", 12),
        ("tpot<50ms", "tpot_ms", "request", "<", 50),
    ],
)
def test_expressions(text: str, figure: str, statistic: str, op: str, limit: float) -> None:
    got = parse_objective(text)
    assert (got.kind.figure, got.statistic, got.op) == (figure, statistic, op)
    assert got.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ttft_p95", "'ttft_p95' is no objective: write it in quotes and like 'ttft_p95<500ms'"),
        ("ttft_p95=500ms", "is no objective"),
        ("latency<1s", "there is no figure 'latency' (known: ttft, tpot, e2e"),
        ("ttft_p95<500tok/s", "'tok/s' is no unit of TTFT (known: ms, s, us)"),
        ("ttft_p95>500ms", "less is better in TTFT, so write < instead of >"),
        ("throughput<=300", "more is better in throughput, so write >= instead of <="),
        ("throughput_p95>300", "throughput is one number, it has no p95"),
        ("chunk_gap<50ms", "chunk gap needs a percentile, such as p95"),
        ("ttft_p100<500ms", "a percentile lies between 0 and 100"),
        ("ttft_p0<500ms", "a percentile lies between 0 and 100"),
        ("failures<5", "that is a share of all requests: write 1% or 0.01"),
        ("failures<0%", "no share lies beyond that, write <= instead of <"),
        ("goodput>100%", "no share lies beyond that, write >= instead of >"),
        ("failures<0.00000000000000001%", "no run can show so fine a share, write <=0 or a coarser one"),
        ("goodput>0.99999999999", "write >=1 or a coarser one"),
        (f"ttft_p95<{'9' * 400}", "nothing measured is ever so large"),
        ("ttft_p95<0", "the limit must be more than 0"),
        ("a\x1b[31m<1", "'a?[31m<1' is no objective"),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        parse_objective(text)


def test_presets_are_the_published_limits() -> None:
    """MLPerf Inference's constraints of its server and interactive scenarios: p99 of TTFT and TPOT in ms."""
    published = {
        "llama2-70b-server": (2000, 200),
        "llama2-70b-interactive": (450, 40),
        "llama3.1-8b-server": (2000, 100),
        "llama3.1-8b-interactive": (500, 30),
    }
    for name, limits in published.items():
        slo = parse_slo([name])
        assert [(o.kind.figure, o.statistic) for o in slo.objectives] == [
            ("ttft_ms", "p99"),
            ("tpot_ms", "p99"),
        ]
        assert tuple(o.limit for o in slo.objectives) == limits
    assert set(PRESETS) == {*published, "interactive"}
    (only,) = parse_slo(["interactive"]).objectives
    assert only.text == "ttft_p95<500ms"


def test_several_in_one_text_and_each_once() -> None:
    slo = parse_slo(["interactive, failures<1%,", "ttft_p95<500ms"])
    assert [o.text for o in slo.objectives] == ["ttft_p95<500ms", "failures<1%"]


def test_the_limits_of_goodput() -> None:
    own = parse_slo(["goodput>0.9", "ttft<1s", "tpot_p99<50ms"])
    assert [o.text for o in own.limits] == ["ttft<1s"]
    assert [o.text for o in own.objectives] == ["goodput>0.9", "tpot_p99<50ms"]
    beside = parse_slo(["goodput>0.9", "ttft_p95<1s", "tpot_p99<50ms", "e2e_mean<9s", "chunk_gap_p99<1s"])
    assert [o.text for o in beside.limits] == ["ttft_p95<1s", "tpot_p99<50ms"]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], "no objective: give one like 'ttft_p95<500ms', or a preset (interactive, llama2-70b-server"),
        ([" , "], "no objective"),
        (["goodput>0.9", "throughput>3"], "goodput needs limits that a good request keeps"),
        (
            ["ttft<500ms"],
            "say how many must keep it ('goodput>0.99'), or give a percentile ('ttft_p95<500ms')",
        ),
        (["llama4"], "'llama4' is no objective"),
    ],
)
def test_sets_that_make_no_sense(texts: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)):
        parse_slo(texts)
