"""Timeline: what counts as first event, first token and gap, and what a merged read leaves unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.engines.decode import decode_chunk
from loadgen.stream.timeline import Timeline

MS = 1_000_000


def chat(**delta: Any) -> dict[str, Any]:
    return {"id": "c-1", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


FINISH = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}


def usage(output: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": output}}


def event(payload: dict[str, Any] | str) -> bytes:
    return b"data: " + (payload if isinstance(payload, str) else json.dumps(payload)).encode() + b"\n\n"


def run(*pieces: tuple[int, dict[str, Any] | str | list[dict[str, Any]]]) -> Timeline:
    """Pieces of (ms, one event's payload or several payloads in one chunk)."""
    timeline = Timeline(decode_chunk, keep_text=True)
    for ms, payload in pieces:
        payloads = payload if isinstance(payload, list) else [payload]
        timeline.feed(b"".join(event(p) for p in payloads), ms * MS)
    timeline.close(0, complete=True)
    return timeline


def test_a_role_chunk_is_the_first_event_but_not_the_first_token() -> None:
    t = run((10, chat(role="assistant", content="")), (50, chat(content="Hi")), (70, chat(content=" you")))
    assert (t.first_event, t.first_text, t.last_text) == (10 * MS, 50 * MS, 70 * MS)
    assert list(t.text_ns) == [50 * MS, 70 * MS]


def test_role_and_first_token_in_one_chunk_have_one_exact_time() -> None:
    t = run((40, [chat(role="assistant", content=None), chat(content="Hi")]))
    assert t.first_event == t.first_text == 40 * MS
    assert list(t.coalesced) == []


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_generated_text_and_the_answer_comes_later(name: str) -> None:
    t = run((10, chat(**{name: "Hm"})), (20, chat(**{name: " so"})), (30, chat(content="4")))
    assert (t.first_text, t.first_answer, t.last_text) == (10 * MS, 30 * MS, 30 * MS)
    assert len(t.text_ns) == 3


def test_all_reasoning_has_a_first_token_and_no_first_answer() -> None:
    t = run((10, chat(reasoning="a")), (20, chat(reasoning="b")), (30, FINISH))
    assert t.first_text == 10 * MS
    assert t.first_answer is None


def test_tool_call_deltas_are_generated_text() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]}
    t = run((10, chat(role="assistant", content=None)), (20, chat(**call)), (30, FINISH))
    assert t.first_text == t.last_text == 20 * MS


def test_finish_usage_and_done_are_no_gaps() -> None:
    t = run((10, chat(content="a")), (30, chat(content="b")), (90, FINISH), (95, usage(2)), (99, "[DONE]"))
    assert list(t.text_ns) == [10 * MS, 30 * MS]
    assert t.last_text == 30 * MS
    assert t.done
    assert t.tally.usage().output_tokens == 2
    assert t.events == 5


def test_a_finish_with_the_last_token_counts_its_text() -> None:
    last = {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "length"}]}
    t = run((10, chat(content="a")), (30, last))
    assert t.last_text == 30 * MS
    assert t.finished


def test_pings_and_progress_are_not_tokens() -> None:
    t = Timeline(decode_chunk)
    t.feed(b":\n\n", 5 * MS)
    t.feed(event({"choices": [{"index": 0, "delta": {}}], "prompt_progress": {"processed": 5}}), 7 * MS)
    t.feed(event(chat(content="a")), 9 * MS)
    assert (t.first_event, t.first_text) == (7 * MS, 9 * MS)
    assert t.pings == 1


def test_tokens_per_event_from_cumulative_counts() -> None:
    def counted(text: str, n: int) -> dict[str, Any]:
        return {**chat(content=text), "usage": {"prompt_tokens": 5, "completion_tokens": n}}

    t = run((10, counted("a", 1)), (20, counted("", 2)), (30, counted("é", 3)), (40, counted("bc", 5)))
    assert t.event_tokens == [1, 2, 2]


def test_tokens_per_event_are_unknown_if_one_event_does_not_say() -> None:
    with_ids = {"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [7]}]}
    assert run((10, with_ids)).event_tokens == [1]
    assert run((10, with_ids), (20, chat(content="b"))).event_tokens is None


def test_an_error_event_in_the_stream_is_kept() -> None:
    t = run(
        (10, chat(content="a")), (20, {"error": {"message": "KV cache is full", "code": 500}}), (21, "[DONE]")
    )
    assert t.error is not None
    assert "KV cache is full" in t.error


def test_an_event_of_type_error_is_an_error() -> None:
    t = Timeline(decode_chunk)
    t.feed(b'event: error\ndata: {"detail": "gone"}\n\n', MS)
    assert t.error is not None
    assert "gone" in t.error


@pytest.mark.parametrize("bad", [b"data: {]\n\n", b"data: \xff\xfe\n\n", b"data: 3\n\n", b"data: null\n\n"])
def test_nonsense_is_malformed_not_an_exception(bad: bytes) -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")), MS)
    t.feed(bad, 2 * MS)
    assert t.malformed
    assert len(t.text_ns) == 1


def test_done_without_its_blank_line() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")) + b"data: [DONE]", MS)
    assert not t.done
    t.close(2 * MS, complete=True)
    assert t.done


def test_an_event_cut_off_by_a_lost_connection_is_dropped() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")) + b'data: {"choi', MS)
    t.close(2 * MS, complete=False)
    assert t.malformed is None
    assert t.events == 1


# --- merged reads ---------------------------------------------------------------------------------------


def test_a_merged_piece_is_marked_with_its_largest_error() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")), 10 * MS)
    t.feed(event(chat(content="b")), 50 * MS, 12 * MS)  # waited with the next one
    t.feed(event(chat(content="c")), 50 * MS)
    assert list(t.text_ns) == [10 * MS, 50 * MS, 50 * MS]
    assert list(t.coalesced) == [1]
    assert list(t.errors_ns) == [38 * MS]
    assert (t.first_text_error, t.last_text_error) == (0, 0)


def test_a_merged_first_token_says_so() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")), 50 * MS, 10 * MS)
    t.feed(event(chat(content="b")), 50 * MS)
    assert (t.first_text, t.first_text_error) == (50 * MS, 40 * MS)
    assert t.first_event_error == 40 * MS


def test_a_role_chunk_merged_with_the_first_token_leaves_ttft_exact() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(role="assistant", content="")), 50 * MS, 49 * MS)
    t.feed(event(chat(content="a")), 50 * MS)
    assert (t.first_event_error, t.first_text_error) == (MS, 0)


def test_without_http_chunks_only_the_last_event_of_a_read_is_exact() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")) + event(chat(content="b")), 50 * MS, 10 * MS, framed=False)
    assert list(t.coalesced) == [0]


def test_without_http_chunks_bytes_of_a_next_event_make_the_last_one_inexact_too() -> None:
    t = Timeline(decode_chunk)
    t.feed(event(chat(content="a")) + b"data: {", 50 * MS, 10 * MS, framed=False)
    assert list(t.coalesced) == [0]


# --- the fast path gives what full parsing gives ---------------------------------------------------------

TRICKY = [
    "a",
    " the",
    "",
    '"usage":{',
    '"content":"',
    '\\"content\\":\\"x',
    "\\",
    '"',
    "\n\n",
    "\ndata: [DONE]\n\n",
    "\r",
    "\t",
    "\x7f",
    "\x00",
    "é",
    "\u2028",
    "🦀",
    "[DONE]",
    "}",
    '"}}]}',
    "a" * 3000,
]
STYLES = [
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (" , ", " : "), "ensure_ascii": False},
]


def build(kind: str, text: str, style: dict[str, Any], number: int) -> bytes:
    if kind == "content":
        payload = chat(content=text)
    elif kind == "reordered":
        payload = {"choices": [{"finish_reason": None, "delta": {"content": text}, "index": 0}], "id": "c-1"}
    elif kind == "reasoning":
        payload = chat(reasoning_content=text)
    elif kind == "completions":
        payload = {"id": "c-1", "choices": [{"text": text, "index": 0, "finish_reason": None}]}
    elif kind == "echo":  # the same text in a place that means nothing
        payload = {
            "model": text,
            "choices": [{"index": 0, "delta": {"note": text, "content": text}}],
            "x": text,
        }
    elif kind == "timings":
        payload = {**chat(content=text), "timings": {"predicted_n": number}}
    else:
        payload = {"id": "c-1", "choices": [{"index": 1, "delta": {"content": text}}]}
    return b"data: " + json.dumps(payload, **style).encode() + b"\n\n"


KINDS = ["content", "reordered", "reasoning", "completions", "echo", "timings", "choice1"]
TEXT = st.one_of(
    st.sampled_from(TRICKY), st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=9)
)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), TEXT), min_size=1, max_size=25),
    st.sampled_from(STYLES),
    st.data(),
)
def test_any_stream_in_any_pieces_gives_the_text_that_was_put_in(
    parts: list[tuple[str, str]], style: dict[str, Any], data: st.DataObject
) -> None:
    events = [build(kind, text, style, i) for i, (kind, text) in enumerate(parts)]
    if data.draw(st.booleans()):
        stream = b"".join(events)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
        pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    else:
        pieces = events
    t = Timeline(decode_chunk, keep_text=True)
    for i, piece in enumerate(pieces):
        t.feed(piece, i * MS)
    assert t.malformed is None
    assert t.text == "".join(text for _, text in parts)
    assert t.events == len(parts)
    assert len(t.text_ns) == sum(1 for _, text in parts if text)
    if pieces is events:
        assert list(t.text_ns) == [i * MS for i, (_, text) in enumerate(parts) if text]
        answers = [i for i, (kind, text) in enumerate(parts) if text and kind != "reasoning"]
        assert t.first_answer == (answers[0] * MS if answers else None)


def test_most_events_of_a_plain_stream_are_not_parsed() -> None:
    calls = 0

    def counting(data: bytes) -> Any:
        nonlocal calls
        calls += 1
        return decode_chunk(data)

    t = Timeline(counting)
    for i in range(200):
        t.feed(event(chat(content=f" w{i}")), i * MS)
    assert len(t.text_ns) == 200
    assert calls < 10
