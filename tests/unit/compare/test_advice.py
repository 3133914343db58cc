"""Advice: each sentence backed by rows that exist and are decided, and none without."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.compare.assess import judged
from loadgen.compare.facts import EngineFacts
from loadgen.compare.result import Row, RunComparison
from loadgen.compare.verdict import BETTER, NO_DIFFERENCE, NOT_DECIDABLE
from loadgen.validity.finding import Level
from tests.unit.compare.compared import (
    DECODE,
    E2E,
    EQUAL,
    SINGLE,
    THROUGHPUT,
    TPOT,
    TTFT,
    comparison,
    level,
    row,
    seen,
)

GIB = 2**30


def single(*rows: Row, **more: Any) -> RunComparison:
    return comparison(*rows, **{"seen": seen(1, 50), **more})


def long(*rows: Row) -> RunComparison:
    return comparison(*rows, scenario="long_prompt", seen=seen(1, 2000.2))


def many(*rows: Row) -> RunComparison:
    return comparison(*rows, scenario="concurrency", seen=seen(16, 50))


def advice(*comparisons: RunComparison) -> dict[str, tuple[str | None, str]]:
    return {a.use: (a.engine, a.sentence) for a in judged(list(comparisons), None).advice}


def test_one_use_one_sentence() -> None:
    assert advice(SINGLE) == {
        "single": (
            "b",
            "one user, interactive: take b; b is better than a in TTFT 0.50 x (0.49 to 0.51) and decode "
            "speed 1.40 x (1.37 to 1.43)",
        )
    }
    assert advice(EQUAL) == {
        "single": (
            None,
            "one user, interactive: take either; no difference that matters in TTFT and decode speed",
        )
    }


def test_what_is_not_decided_gets_no_advice() -> None:
    assert advice(single(row(TTFT, 0.9, NOT_DECIDABLE), row(DECODE, 1.0, NO_DIFFERENCE))) == {}
    assert advice(single(row(TTFT, 0.5), validity=level(Level.VOID))) == {}
    assert advice(single()) == {}


def test_each_engine_for_what_it_is_better_at() -> None:
    found = advice(SINGLE, long(row(TTFT, 2.0), row(DECODE, 1.0, NO_DIFFERENCE)), many(row(THROUGHPUT, 0.5)))
    assert list(found) == ["single", "long", "many", "gateway"]
    assert found["long"][1].startswith("long context (2,000 prompt tokens): take a; ")
    assert found["many"][1].startswith("many users at once (16 users): take a; ")
    assert found["gateway"] == (
        None,
        "both behind a gateway: b for one user, interactive; a for long context (2,000 prompt tokens) and "
        "many users at once (16 users)",
    )


def test_no_gateway_for_one_engine_that_is_better_everywhere_or_before_and_after() -> None:
    assert "gateway" not in advice(SINGLE, many(row(THROUGHPUT, 2.0)))
    pair = {"engine": "a (B)", "baseline": "a (A)"}
    labelled = {"a (A)": seen(1, 50)["a"], "a (B)": seen(1, 50)["a"]}
    loaded = {name: EngineFacts(users=16, prompt_tokens=50.0) for name in labelled}
    changed = advice(
        comparison(row(TTFT, 0.5, **pair), seen=labelled),
        comparison(row(THROUGHPUT, 0.5, **pair), scenario="concurrency", seen=loaded),
    )
    assert changed.keys() == {"single", "many"}
    assert [engine for engine, _ in changed.values()] == ["a (B)", "a (A)"]


def test_where_a_quick_start_and_quick_writing_cross() -> None:
    # a: 100 ms, then 20 ms a token; b: 50 ms, then 22 ms. 50 ms / 2 ms = 25 tokens after the first.
    split = single(
        row(TTFT, 0.5, value=50.0, baseline_value=100.0),
        row(DECODE, 0.9),
        row(TPOT, 1.1, value=22.0, baseline_value=20.0),
    )
    engine, sentence = advice(split)["single"]
    assert engine is None
    assert sentence.endswith(
        "; answers of up to about 26 tokens are through sooner with b, longer ones with a"
    )
    undecided = single(row(TTFT, 0.5), row(DECODE, 0.9), row(TPOT, 1.1, NOT_DECIDABLE))
    assert "through sooner" not in advice(undecided)["single"][1]


@pytest.mark.parametrize(
    ("a_gib", "b_gib", "engine"), [(10.9, 5.5, "b"), (5.5, 10.9, "a"), (10.0, 10.2, None)]
)
def test_little_memory_is_by_the_least_needed(a_gib: float, b_gib: float, engine: str | None) -> None:
    needs = {
        name: EngineFacts(
            users=1, memory={"least_needed": {"bytes": round(gib * GIB)}, "reserved": {"bytes": 1}}
        )
        for name, gib in (("a", a_gib), ("b", b_gib))
    }
    found = judged([comparison(row(TTFT, 1.0, NOT_DECIDABLE), seen=needs)], None).advice
    assert [(a.use, a.engine) for a in found] == [("memory", engine)]
    assert f"b needs {b_gib} GiB at least, a {a_gib} GiB (single_user)" in found[0].sentence
    assert {r["figure"] for r in found[0].because} == {"least_needed_bytes"}


def test_no_advice_on_memory_by_what_is_reserved() -> None:
    held = {name: EngineFacts(memory={"reserved": {"bytes": n}}) for name, n in (("a", 40 * GIB), ("b", GIB))}
    assert judged([comparison(row(TTFT, 1.0, NOT_DECIDABLE), seen=held)], None).advice == []


def test_simulated_engines_are_named_in_each_sentence() -> None:
    fake: Any = {"simulated": ["a", "b"]}
    found = judged(
        [
            single(row(TTFT, 0.5), **fake),
            comparison(row(THROUGHPUT, 0.5), scenario="concurrency", seen=seen(16, 50), **fake),
        ],
        None,
    )
    sentences = [a.sentence for a in found.advice] + [o.said for o in found.outcomes]
    sentences += [o.sentence for o in found.overall]
    assert len(sentences) == 3 + 2 + 1
    assert all("simulated" in sentence for sentence in sentences)


answers = st.sampled_from([BETTER, NO_DIFFERENCE, NOT_DECIDABLE])
ratios = st.sampled_from([0.5, 0.9, 1.1, 2.0])


@given(
    st.lists(st.tuples(st.sampled_from([TTFT, DECODE, TPOT, E2E, THROUGHPUT]), ratios, answers), max_size=5)
)
def test_every_sentence_rests_on_decided_rows(drawn: list[tuple[str, float, str]]) -> None:
    rows = list({figure: row(figure, ratio, answer) for figure, ratio, answer in drawn}.values())
    comparisons = [single(*rows), long(*rows), many(*rows)]
    for found in judged(comparisons, None).advice:
        assert found.because
        for because in found.because:
            of = next(c for c in comparisons if c.scenario == because["scenario"])
            found_row = of.row(because["engine"], because["figure"], because["statistic"])
            assert found_row is not None
            assert found_row.answer != NOT_DECIDABLE
        if found.engine:
            assert any(r.better == found.engine for c in comparisons for r in c.rows)


def test_steps_of_a_sweep_are_told_apart() -> None:
    steps = [comparison(row(THROUGHPUT, 2.0), scenario="sweep", seen=seen(n, 50)) for n in (1, 2, 4)]
    judged(steps, None)
    assert [c.scenario for c in steps] == ["sweep (1 user)", "sweep (2 users)", "sweep (4 users)"]
    twice = [comparison(row(THROUGHPUT, 2.0), scenario="again", seen=seen(4, 50)) for _ in range(2)]
    judged(twice, None)
    assert [c.scenario for c in twice] == ["again (1)", "again (2)"]


def test_cost_against_the_baseline() -> None:
    facts = {
        "a": EngineFacts(users=16, throughput=1000.0, gpus=2, gpus_source="as given"),
        "b": EngineFacts(users=16, throughput=2000.0, gpus=1, gpus_source="as given"),
    }
    one = comparison(row(THROUGHPUT, 2.0), seen=facts)
    cost = judged([one], 1.8).comparisons[0].to_dict()["cost"]
    assert cost["a"]["per_million_output_tokens"] == pytest.approx(1.0)
    assert cost["b"]["per_million_output_tokens"] == pytest.approx(0.25)
    # Twice as fast on half the cards; the interval of the ratio was 1.96 to 2.04.
    assert cost["b"]["against_baseline"] == pytest.approx(
        {"baseline": "a", "ratio": 0.25, "low": 0.5 / 2.04, "high": 0.5 / 1.96}
    )


def test_parts_that_nobody_knows_are_absent() -> None:
    plain = judged([single(row(TTFT, 0.5))], None).to_dict()["comparisons"][0]
    assert plain.keys() & {"memory", "energy", "cost"} == set()
    assert plain["verdict"]["pairs"][0]["better"] == "b"
