from dataclasses import replace
from typing import Any

from loadgen.metrics.levels import Stretch, levels
from loadgen.metrics.turns import Turn
from loadgen.report.load import EngineData
from loadgen.slo import parse_slo
from loadgen.slo.levels import edge, judge_levels
from tests.unit.metrics.rows import T0, columns, row

S = 10**9


def engine(ttft_by_users: dict[int, float], requests: int = 400) -> EngineData:
    """A level of 100 s for each number of users, in one turn; a warm-up and a request beyond the end."""
    rows: list[dict[str, Any]] = [row(-5, 1, phase="warmup", event_us=[9_000_000])]
    stretches = []
    for k, (users, ttft_ms) in enumerate(ttft_by_users.items()):
        start = k * 100
        us = round(ttft_ms * 1000)
        rows += [row(start + n * 100 / requests, 0.5, event_us=[us, us + 1000]) for n in range(requests)]
        stretches.append(Stretch(users, 0, T0 + start * S, T0 + (start + 100) * S, 100.0))
    end = len(stretches) * 100
    rows.append(row(end + 1, 1, event_us=[9_000_000]))
    turn = Turn(0, 0, T0, T0 + (end + 5) * S, end + 5.0)
    return EngineData(columns(rows), [turn], {}, stretches=stretches)


def judged(made: EngineData, slo: str) -> list[str]:
    return judge_levels(parse_slo([slo]), made, made.stretches)


def test_every_level_is_judged_by_the_requests_that_were_sent_in_it() -> None:
    made = engine({1: 100.0, 8: 300.0, 16: 700.0})
    assert judged(made, "ttft_p95<500ms") == ["met", "met", "not met"]
    assert judged(made, "ttft_p95<200ms") == ["met", "not met", "not met"]
    assert judged(made, "failures<1%,ttft_p50<1s") == ["met", "met", "met"]


def test_levels_of_too_few_requests_decide_nothing() -> None:
    made = engine({1: 100.0, 8: 300.0}, requests=5)
    assert judged(made, "ttft_p99<500ms") == ["not decidable", "not decidable"]


def test_stretches_of_a_level_are_judged_together() -> None:
    made = engine({4: 100.0, 16: 900.0, 5: 800.0})
    assert judged(made, "ttft_p95<500ms") == ["met", "not met", "not met"]
    made.stretches[2] = replace(made.stretches[2], users=4)
    assert judged(made, "ttft_p95<500ms") == ["not decidable", "not met"]  # two stretches, far apart
    assert judged(made, "ttft_p95<850ms") == ["met", "not met"]


def test_the_edge_is_the_most_users_below_the_first_that_break_it() -> None:
    made = engine({1: 100.0, 8: 700.0, 16: 100.0})
    rows = made.columns.word["phase"] != "warmup"
    found = levels(made.columns, rows, made.stretches)
    for level, answer in zip(found, judged(made, "ttft_p95<500ms"), strict=True):
        level["slo"] = answer
    assert edge(found) == {"users": 1, "broken": 8}
    assert edge(found[:1]) == {"users": 1, "broken": None}
    assert edge([{**found[0], "slo": "not decidable"}]) == {"users": None, "broken": None}
