from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.arrivals import start_offsets
from loadgen.workload.scenarios import CONCURRENCY, LONG_PROMPT, REFERENCE, SCENARIOS, SINGLE_USER
from loadgen.workload.turns import turn_order


@pytest.mark.parametrize(
    ("engines", "blocks", "expected"),
    [
        ("A", 3, "AAA"),
        ("AB", 1, "AB"),
        ("AB", 4, "ABBABAAB"),
        ("AB", 6, "ABBABAABABBA"),
        ("ABC", 2, "ABCCBA"),
        ("ABCD", 4, "ABCDDCBAABCDDCBA"),
        ("AB", 0, ""),
    ],
)
def test_order(engines, blocks, expected):
    turns = turn_order(engines, blocks)
    assert "".join(t.engine for t in turns) == expected
    assert [t.index for t in turns] == list(range(len(turns)))


names = st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


@given(names, st.integers(1, 40))
def test_every_block_has_every_engine_once(engines, blocks):
    turns = turn_order(engines, blocks)
    for block in range(blocks):
        assert Counter(t.engine for t in turns if t.block == block) == Counter(engines)


@given(names, st.integers(1, 10))
def test_a_steady_drift_falls_on_all_engines_alike(engines, quarters):
    places = dict.fromkeys(engines, 0)
    for turn in turn_order(engines, 4 * quarters):
        places[turn.engine] += turn.index
    assert len(set(places.values())) == 1


@given(st.integers(1, 10))
def test_with_two_engines_each_goes_first_equally_often(quarters):
    turns = turn_order(["a", "b"], 4 * quarters)
    assert Counter(t.engine for t in turns[::2]) == {"a": 2 * quarters, "b": 2 * quarters}


def test_burst_starts_all_at_once_and_staggered_spreads_over_one_request():
    assert start_offsets(4, "burst", 2.0) == [0, 0, 0, 0]
    assert start_offsets(4, "staggered", 2.0) == [0, 0.5, 1.0, 1.5]
    assert start_offsets(0, "staggered", 2.0) == []
    with pytest.raises(ValueError, match="neither burst nor staggered"):
        start_offsets(1, "poisson", 2.0)


def test_the_three_workloads_are_the_reference_experiments():
    assert REFERENCE == ("single_user", "long_prompt", "concurrency")
    assert [SCENARIOS[n].users for n in REFERENCE] == [1, 1, 16]
    assert [SCENARIOS[n].turn_requests for n in REFERENCE] == [8, 6, 64]
    assert [SCENARIOS[n].prompt_tokens for n in REFERENCE] == [50, 2000, 50]
    assert {s.output_tokens for s in (SINGLE_USER, LONG_PROMPT, CONCURRENCY)} == {256}
