import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.shapes import Segment, parse_shape


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("steps:1,2,4@30s", [(30, 1, 1), (30, 2, 2), (30, 4, 4)]),
        ("steps: 8, 2 @ 1m", [(60, 8, 8), (60, 2, 2)]),
        ("steps", [(10, 1, 1), (10, 2, 2), (10, 4, 4), (10, 8, 8), (10, 12, 12)]),
        ("steps:3,5", [(10, 3, 3), (10, 5, 5)]),
        ("ramp:1-64@10m", [(600, 1, 64)]),
        ("ramp:64-1@90", [(90, 64, 1)]),
        ("ramp", [(50, 1, 12)]),
        ("spike:4-64@1m/10s", [(60, 4, 4), (10, 64, 64), (60, 4, 4)]),
        ("spike:4-64@5s", [(5, 4, 4), (5, 64, 64), (5, 4, 4)]),
        ("spike", [(10, 1, 1), (10, 12, 12), (10, 1, 1)]),
        ("4@1m,4-64@5m,64@1.5s", [(60, 4, 4), (300, 4, 64), (1.5, 64, 64)]),
    ],
)
def test_what_is_written_and_what_it_means(text, segments):
    shape = parse_shape(text, users=12, level_s=10)
    assert [(s.seconds, s.first, s.last) for s in shape.segments] == segments
    assert shape.seconds == sum(s for s, _, _ in segments)
    assert (shape.first, shape.peak) == (segments[0][1], max(max(a, b) for _, a, b in segments))


@pytest.mark.parametrize(
    ("text", "first", "peak", "level_s"),
    [("knee:2-256@20s", 2, 256, 20), ("knee", 1, 12, 10), ("hand", 12, 12, 10), ("own", 1, 12, 10)],
)
def test_shapes_of_which_the_course_is_not_known(text, first, peak, level_s):
    shape = parse_shape(text, users=12, level_s=10)
    assert (shape.first, shape.peak, shape.level_s, shape.seconds) == (first, peak, level_s, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no shape"),
        ("waves", "no shape"),
        ("hand:3", "no shape"),
        ("steps:", "say which users"),
        ("steps:1,,2", "users are a whole number"),
        ("steps:0,2", "users are a whole number"),
        ("steps:1.5", "users are a whole number"),
        ("steps:-1", "users are a whole number"),
        ("steps:100001", "users are a whole number"),
        ("steps:1,2@", "no time behind the @"),
        ("steps:1,2@0.5s", "from a second to a week"),
        ("steps:1,2@8d", "from a second to a week"),
        ("steps:1,2@300h", "from a second to a week"),
        ("ramp:5@10s", "is not from so many users"),
        ("ramp:1-x@10s", "users are a whole number"),
        ("knee:64-1@10s", "from few users to many"),
        ("spike:1-4@10s/", "from a second to a week"),
        ("4", "has no time"),
        ("4@10s,", "has no time"),
        ("1@100h,1@100h", "lasts a week at most"),
        (",".join(["1@1s"] * 1001), "at most 1,000 parts"),
        ("\u0663@5s", "users are a whole number"),
    ],
)
def test_mistakes_are_told_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=words):
        parse_shape(text)


def test_a_shape_ends():
    shape = parse_shape("2@1s,4@1s")
    assert [shape.users_at(t) for t in (0, 0.99, 1, 1.99, 2, 100)] == [2, 2, 4, 4, None, None]


@given(st.integers(1, 200), st.integers(1, 200), st.floats(1, 1000))
def test_on_a_ramp_every_number_of_users_lasts_equally_long(first, last, seconds):
    segment = Segment(seconds, first, last)
    n = abs(last - first) + 1
    middles = [segment.users_at(seconds * (k + 0.5) / n) for k in range(n)]
    assert middles == list(range(first, last + (1 if last >= first else -1), 1 if last >= first else -1))
