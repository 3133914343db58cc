from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.classes import MIX, TrafficClass, Wanted, mixed, parse_mix


def test_named_classes_have_lengths_and_others_say_theirs():
    assert parse_mix("interactive=70, rag=20:6000/300,batch=10:1/2") == (
        TrafficClass("interactive", 70, 200, 128),
        TrafficClass("rag", 20, 6000, 300),
        TrafficClass("batch", 10, 1, 2),
    )
    assert [c.name for c in parse_mix(MIX)] == ["interactive", "long", "batch"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one class"),
        (" , ", "at least one class"),
        ("interactive", "is not NAME=SHARE"),
        ("interactive=1:20", "is not NAME=SHARE"),
        ("interactive=1:-5/3", "is not NAME=SHARE"),
        ("interactive=0", "number above 0, not '0'"),
        ("interactive=nan", "number above 0, not 'nan'"),
        ("interactive=1e400", "number above 0, not '1e400'"),
        ("interactive=x", "number above 0, not 'x'"),
        ("interactive=1,interactive=2", "there twice"),
        ("rag=1", "say how long requests of rag are"),
        ("a b=1:2/3", "cannot be called 'a b'"),
        ("long=1:0/3", "from 1 to 10,000,000"),
        ("long=1:1/30000000", "from 1 to 10,000,000"),
        (",".join(f"c{n}=1:1/1" for n in range(9)), "at most 8 classes"),
    ],
)
def test_what_is_no_mix(text, said):
    with pytest.raises(ValueError, match=said):
        parse_mix(text)


def test_shares_are_kept_exactly_where_they_can_be():
    counts = Counter(w.traffic_class for w in mixed(parse_mix(MIX), 100, "1/0"))
    assert counts == {"interactive": 70, "long": 20, "batch": 10}


def test_every_class_has_a_request_where_there_is_room():
    classes = parse_mix("interactive=98,long=1,batch=1")
    assert Counter(w.traffic_class for w in mixed(classes, 8, "s")) == {
        "interactive": 6,
        "long": 1,
        "batch": 1,
    }
    assert [w.traffic_class for w in mixed(classes, 1, "s")] == ["interactive"]


def test_lengths_are_those_of_the_class_and_the_seed_gives_the_order():
    classes = parse_mix("long=1,batch=1:10/20")
    assert set(mixed(classes, 2, "s")) == {Wanted(2000, 256, "long"), Wanted(10, 20, "batch")}
    assert mixed(classes, 64, "1/0") == mixed(classes, 64, "1/0") != mixed(classes, 64, "1/1")


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=8), st.integers(1, 300))
def test_as_many_as_asked_and_none_further_from_its_share_than_one(shares, requests):
    classes = tuple(TrafficClass(f"c{n}", share, 1, 1) for n, share in enumerate(shares))
    counts = Counter(w.traffic_class for w in mixed(classes, requests, "s"))
    assert sum(counts.values()) == requests
    if requests >= len(classes):
        assert len(counts) == len(classes)
    for c in classes:
        ideal = requests * c.share / sum(shares)
        assert abs(counts[c.name] - ideal) < len(classes)
