"""The SSE decoder against the standard's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.stream.sse import EventTooLarge, SSEDecoder


def decode(*pieces: bytes, close: bool = False) -> list[bytes]:
    decoder = SSEDecoder()
    events = [e.data for piece in pieces for e in decoder.feed(piece)]
    if close:
        events += [e.data for e in decoder.close()]
    return events


# Each row: what came, the data of the events that the standard dispatches.
TABLE = [
    (b"data: a\n\n", [b"a"]),
    (b"data:a\n\n", [b"a"]),
    (b"data:  a\n\n", [b" a"]),  # one space is the separator's, the next belongs to the value
    (b"data: a\r\n\r\n", [b"a"]),
    (b"data: a\r\r", [b"a"]),
    (b"data: a\n\r\n", [b"a"]),
    (b"data: a\r\n\n", [b"a"]),
    (b"data: a\r\n\r", [b"a"]),
    (b"data: a\n\ndata: b\r\r\ndata: c\r\n\r\n", [b"a", b"b", b"c"]),
    (b"data: a\ndata: b\n\n", [b"a\nb"]),
    (b"data: a\rdata:b\r\ndata:c\n\n", [b"a\nb\nc"]),
    (b"data\n\n", [b""]),
    (b"data:\n\n", [b""]),
    (b"data\ndata\n\n", [b"\n"]),
    (b": ping\n\n", []),
    (b":\n\ndata: a\n\n", [b"a"]),
    (b":\ndata: a\n: in between\ndata: b\n\n", [b"a\nb"]),
    (b"event: x\nid: 7\nretry: 10\ndata: a\n\n", [b"a"]),
    (b"event: x\n\ndata: a\n\n", [b"a"]),
    (b"datas: a\n\ndata: b\n\n", [b"b"]),
    (b"Data: a\n\n", []),
    (b" data: a\n\n", []),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"data: \xef\xbb\xbfa\n\n", [b"\xef\xbb\xbfa"]),
    (b"\n\n\ndata: a\n\n", [b"a"]),
    (
        "data: \u2028x\u2029y\x85z\x0b\x0c\x1c\x1d\x1e\n\n".encode(),
        ["\u2028x\u2029y\x85z\x0b\x0c\x1c\x1d\x1e".encode()],
    ),
    (b"data: a", []),
    (b"data: a\n", []),
    (b"data: a\n\ndata: [DONE]", [b"a"]),
    (b"", []),
]


@pytest.mark.parametrize(("stream", "expected"), TABLE)
def test_dispatches_what_the_standard_says(stream: bytes, expected: list[bytes]) -> None:
    assert decode(stream) == expected


@pytest.mark.parametrize(("stream", "expected"), TABLE)
def test_byte_by_byte_gives_the_same(stream: bytes, expected: list[bytes]) -> None:
    assert decode(*(stream[i : i + 1] for i in range(len(stream)))) == expected


def test_event_type_belongs_to_its_event_only() -> None:
    events = SSEDecoder().feed(b"event: error\ndata: a\n\ndata: b\n\n")
    assert [(e.type, e.data) for e in events] == [(b"error", b"a"), (b"", b"b")]


def test_event_is_dispatched_at_the_first_byte_that_ends_its_blank_line() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\n\r") != []
    assert decoder.feed(b"\ndata: b\n") == []
    assert [e.data for e in decoder.feed(b"\n")] == [b"b"]


@pytest.mark.parametrize("tail", [b"data: [DONE]", b"data: [DONE]\n", b"data: [DONE]\r", b"data: [DONE]\r\n"])
def test_close_gives_the_event_whose_blank_line_is_missing(tail: bytes) -> None:
    assert decode(b"data: a\n\n", tail, close=True) == [b"a", b"[DONE]"]


def test_close_gives_nothing_after_a_whole_stream() -> None:
    assert decode(b"data: a\n\n", close=True) == [b"a"]


def test_comments_are_counted() -> None:
    decoder = SSEDecoder()
    decoder.feed(b":\n\n: keep-alive\n\ndata: a\n\n")
    assert decoder.comments == 2


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * 100],
        [b"data: " + b"x" * 100 + b"\n"],
        [b"data: xxxxxxxxxxxxxxx\n"] * 8,
        [b"x"] * 200,
    ],
)
def test_an_endless_event_is_refused(pieces: list[bytes]) -> None:
    decoder = SSEDecoder(limit=64)
    with pytest.raises(EventTooLarge):
        [decoder.feed(piece) for piece in pieces]


LINE_END = st.sampled_from([b"\n", b"\r", b"\r\n"])
LINE = st.one_of(
    st.sampled_from(
        [b"", b"", b"data: {}", b"data:", b": ping", b"event: e", b"id: 1", b"data", b"nonsense"]
    ),
    st.text(min_size=0, max_size=12).map(
        lambda t: ("data: " + t).replace("\r", "").replace("\n", "").encode()
    ),
)
STREAM = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(LINE, LINE_END), max_size=20),
    st.sampled_from([b"", b"data: cut", b"\r"]),
).map(lambda t: t[0] + b"".join(line + end for line, end in t[1]) + t[2])


@given(STREAM, st.data())
def test_any_split_gives_the_same_events(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode(*pieces, close=True) == decode(stream, close=True)


@given(STREAM)
def test_agrees_with_a_direct_reading_of_the_standard(stream: bytes) -> None:
    assert decode(stream) == _reference(stream)


def _reference(stream: bytes) -> list[bytes]:
    """The standard's text followed step by step, on the whole stream at once."""
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    text = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *lines, _unfinished = text.split(b"\n")
    events, buffer = [], b""
    for line in lines:
        if line == b"":
            if buffer != b"":
                events.append(buffer.removesuffix(b"\n"))
            buffer = b""
        elif line.startswith(b":"):
            continue
        else:
            name, _, value = line.partition(b":")
            if name == b"data":
                buffer += value.removeprefix(b" ") + b"\n"
    return events
