import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.workload.arrivals import Arrival
from loadgen.workload.traces import TraceError, parse, read_trace

TRACES = Path(__file__).parents[2] / "fixtures" / "traces"


def shape(trace):
    return [(a.offset_s, a.prompt_tokens, a.output_tokens) for a in trace.arrivals]


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("mooncake.jsonl", "Mooncake", [(0, 812, 40), (0, 1530, 7), (1.5, 64, 120), (4, 96, 33)]),
        ("azure-2023.csv", "Azure", [(0, 374, 44), (1.25, 396, 109), (2.5, 879, 55)]),
        ("azure-2024.csv", "Azure", [(0, 2162, 5), (0.25, 2399, 6), (1.75, 76, 15)]),
        ("burstgpt.csv", "BurstGPT", [(0, 472, 18), (113, 417, 276)]),
        ("burstgpt-sessions.csv", "BurstGPT", [(0, 200, 20), (1.5, 90, 31), (20, 240, 64)]),
    ],
)
def test_formats(file, name, expected):
    trace = read_trace(TRACES / file)
    assert trace.format == name
    assert shape(trace) == expected
    assert trace.seconds == expected[-1][0]


def test_rows_of_failures_are_left_out_and_counted():
    assert read_trace(TRACES / "burstgpt.csv").failed == 1


def test_sessions_are_known_where_the_trace_has_them():
    sessions = [a.session for a in read_trace(TRACES / "burstgpt-sessions.csv").arrivals]
    assert sessions == ["0f2c", "77aa", "0f2c"]
    assert {a.session for a in read_trace(TRACES / "burstgpt.csv").arrivals} == {None}


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ({"speed_up": 2.0}, [(0, 812, 40), (0, 1530, 7), (0.75, 64, 120), (2, 96, 33)]),
        ({"requests": 1}, [(0, 812, 40)]),
        ({"requests": 99}, [(0, 812, 40), (0, 1530, 7), (1.5, 64, 120), (4, 96, 33)]),
        ({"duration_s": 1.5}, [(0, 812, 40), (0, 1530, 7)]),
        ({"start_s": 1.0}, [(0.5, 64, 120), (3, 96, 33)]),
        ({"start_s": 1.0, "duration_s": 1.0, "speed_up": 0.5}, [(1.0, 64, 120)]),
        ({"longest": 200}, [(1.5, 64, 120), (4, 96, 33)]),
    ],
)
def test_cuts_and_speed(cut, expected):
    assert shape(read_trace(TRACES / "mooncake.jsonl", **cut)) == expected


def test_what_is_too_long_is_counted():
    assert read_trace(TRACES / "mooncake.jsonl", longest=200).too_long == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,b,c\n1,2,3\n", "line 1: no trace that is known begins so"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "has no request in the part"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", "line 2: TIMESTAMP is a moment like"),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-16 18:15:46,1,2\n",
            "line 2: TIMESTAMP is no",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1\n",
            "2: 2 values for 3 columns",
        ),
        (
            "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,2\n\n2023-11-16 18:15:46,-1,2\n",
            "line 4: contexttokens is a number of tokens, not '-1'",
        ),
        ("Timestamp,Request tokens,Response tokens\nnan,1,2\n", "line 2: timestamp is a number, not 'nan'"),
        (
            "Timestamp,Request tokens,Response tokens\n1,1.5,2\n",
            "2: request tokens is a number of tokens",
        ),
        ('{"timestamp": 0, "input_length": 8}\n', "line 1: output_length is a number, not None"),
        ('{"timestamp": true, "input_length": 8, "output_length": 1}\n', "timestamp is a number, not True"),
        ('{"timestamp": 0, "input_length": 8, "output_length": 1}\n{"tim\n', "line 2: not valid JSON"),
        ('{"timestamp": 0, "input_length": 8, "output_length": 1}\n[]\n', "line 2: each line is an object"),
        ('{"timestamp": 0, "input_length": 8, "output_length": 0}\n', "1 were left out: empty or too long"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, text, said):
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(TraceError, match=said.replace("(", r"\(")) as e:
        read_trace(path)
    assert str(path) in str(e.value)


def test_no_file_no_text_no_speed(tmp_path):
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TraceError, match="is not text"):
        read_trace(tmp_path / "binary")
    for speed in (0, -1, float("nan"), float("inf")):
        with pytest.raises(TraceError, match="sped up by a number above 0"):
            read_trace(TRACES / "mooncake.jsonl", speed_up=speed)


def test_reading_stops_soon_after_the_cut(tmp_path):
    def rows():
        for n in range(10_000):
            read.append(n)
            yield json.dumps({"timestamp": n * 1000, "input_length": 9, "output_length": 9}) + "\n"

    read = []
    name, found = parse(tmp_path, rows())
    assert (name, next(found)[1]) == ("Mooncake", Arrival(0.0, 9, 9))
    path = tmp_path / "long.jsonl"
    path.write_text("".join(rows()) + "not read\n")
    assert len(read_trace(path, duration_s=10).arrivals) == 10
    assert len(read_trace(path, requests=10).arrivals) == 10


@given(st.lists(st.integers(0, 50_000), min_size=1, max_size=60), st.integers(1, 70))
def test_arrivals_are_in_order_and_the_first_ones(tmp_path_factory, times, requests):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    times = [min(times), *times]  # the trace's zero is its first row
    rows = [{"timestamp": t, "input_length": 1, "output_length": 1} for t in times]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    offsets = [a.offset_s for a in read_trace(path, requests=requests).arrivals]
    expected = sorted(t / 1000 - times[0] / 1000 for t in times)[:requests]
    assert offsets == pytest.approx(expected)
