"""decode_chunk on every dialect, stated from the servers' documentation and captures."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engines.chunk import Chunk
from loadgen.engines.decode import count, decode_chunk


def decode(event: Any) -> Chunk:
    return decode_chunk(json.dumps(event).encode())


def delta(**fields: Any) -> Chunk:
    return decode({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})


TEXTS: list[tuple[dict[str, Any], str, str, str]] = [
    # delta, answer, reasoning, tool text
    ({"role": "assistant", "content": None}, "", "", ""),
    ({"role": "assistant", "content": ""}, "", "", ""),
    ({"role": "assistant", "content": "Hi"}, "Hi", "", ""),
    ({}, "", "", ""),
    ({"content": " "}, " ", "", ""),
    ({"content": "\n"}, "\n", "", ""),
    ({"content": "\u2028"}, "\u2028", "", ""),
    ({"content": 'a "usage":{ b "content":" c \\'}, 'a "usage":{ b "content":" c \\', "", ""),
    ({"reasoning_content": "hm"}, "", "hm", ""),
    ({"reasoning": "hm"}, "", "hm", ""),
    ({"reasoning": "hm", "reasoning_content": "hm"}, "", "hm", ""),
    ({"reasoning": "hm", "content": None}, "", "hm", ""),
    ({"reasoning": "hm", "content": "So"}, "So", "hm", ""),
    ({"reasoning": None, "reasoning_content": "", "content": "x"}, "x", "", ""),
    ({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "add", "arguments": ""}}]}, "", "", "add"),
    ({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]}, "", "", '{"a":'),
    ({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}, {"function": None}]}, "", "", "f{}"),
    ({"tool_calls": []}, "", "", ""),
    ({"tool_calls": None, "content": "x"}, "x", "", ""),
    ({"function_call": {"name": "add", "arguments": "{"}}, "", "", "add{"),
    ({"refusal": "I can't"}, "I can't", "", ""),
    ({"refusal": None, "content": "x"}, "x", "", ""),
    ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", "", ""),
]


@pytest.mark.parametrize(("fields", "answer", "reasoning", "tool"), TEXTS)
def test_generated_text(fields: dict[str, Any], answer: str, reasoning: str, tool: str) -> None:
    chunk = delta(**fields)
    assert (chunk.answer, chunk.reasoning, chunk.tool_text) == (answer, reasoning, tool)
    assert chunk.has_text == bool(answer or reasoning or tool)


def test_finish_with_the_last_text_and_in_its_own_event() -> None:
    last = decode({"choices": [{"index": 0, "delta": {"content": "."}, "finish_reason": "length"}]})
    assert (last.answer, last.finish_reason) == (".", "length")
    alone = decode({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]})
    assert (alone.choice, alone.has_text, alone.finish_reason) == (1, False, "stop")
    assert decode({"choices": [{"text": "", "index": 0, "finish_reason": ""}]}).finish_reason is None


def test_usage_in_a_summary() -> None:
    chunk = decode(
        {
            "choices": [],
            "usage": {
                "prompt_tokens": 37,
                "completion_tokens": 64,
                "total_tokens": 101,
                "prompt_tokens_details": {"cached_tokens": 24},
            },
        }
    )
    assert chunk.choice is None
    assert chunk.usage is not None
    assert (chunk.usage.prompt_tokens, chunk.usage.output_tokens, chunk.usage.cached_tokens) == (37, 64, 24)
    assert chunk.output_tokens_so_far is None  # it is a sum over choices


def test_usage_without_choices_at_all() -> None:
    chunk = decode({"usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    assert chunk.choice is None
    assert chunk.usage is not None
    assert chunk.usage.output_tokens == 2


def test_usage_beside_text_counts_so_far() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "prompt_tokens_details": None}
    chunk = decode({"choices": [{"index": 0, "text": "a"}], "usage": usage})
    assert chunk.output_tokens_so_far == 5
    assert chunk.usage is not None
    assert chunk.usage.cached_tokens is None


def test_null_usage_is_none() -> None:  # OpenAI sends it in every event but the last
    assert decode({"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": None}).usage is None


def test_timings() -> None:
    chunk = decode({"choices": [{"index": 0, "delta": {"content": "a"}}], "timings": {"predicted_n": 7}})
    assert chunk.timings == {"predicted_n": 7}
    assert chunk.output_tokens_so_far == 7


@pytest.mark.parametrize(("ids", "new"), [(None, None), ([], 0), ([5], 1), ([5, 6, 7], 3)])
def test_token_ids(ids: list[int] | None, new: int | None) -> None:
    assert decode({"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": ids}]}).new_tokens == new


def test_several_choices_in_one_event() -> None:
    chunk = decode({"choices": [{"index": 0, "text": "a"}, {"index": 1, "text": "b"}]})
    assert (chunk.choice, chunk.answer) == (0, "ab")


ERRORS: list[tuple[Any, str]] = [
    ({"error": {"message": "boom", "type": "InternalServerError", "param": None, "code": 500}},
     "boom (InternalServerError, 500)"),
    ({"error": {"message": "boom", "type": "e", "code": "internal"}}, "boom (e, internal)"),
    ({"error": {"message": "boom"}}, "boom"),
    ({"error": {"code": 500}}, '{"code":500}'),
    ({"error": "boom"}, "boom"),
    ({"error": ["boom"]}, '["boom"]'),
    ({"object": "error", "message": "boom", "type": "BadRequestError", "param": None, "code": 400},
     "boom (BadRequestError, 400)"),
    ({"choices": [{"index": 0, "delta": {"content": "x"}}], "error": {"message": "late"}}, "late"),
    ({"error": {"message": "two\nlines\x1b[31m"}}, "two lines [31m"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "text"), ERRORS)
def test_error_inside_a_200(event: Any, text: str) -> None:
    assert decode(event).error == text


def test_long_errors_are_cut() -> None:
    error = decode({"error": {"message": "x" * 100_000}}).error
    assert error is not None
    assert len(error) < 500


def test_an_error_that_cannot_be_shown_is_still_one() -> None:
    deep = b'{"error":' + b"[" * 500 + b"]" * 500 + b"}"
    assert decode_chunk(deep).error == "an error that cannot be shown"
    assert decode_chunk(b'{"error":{"code":1' + b"0" * 30 + b',"x":NaN}}').error


@pytest.mark.parametrize("event", [{"error": None, "choices": []}, {"error": False}, {"error": ""}, {}])
def test_no_error(event: Any) -> None:
    assert decode(event).error is None


MALFORMED = [
    b"", b"{", b"null", b"[]", b"1", b'"x"', b"not json", b'{"choices": {"a": 1}}', b'{"choices": [1]}',
    b"<html>", b"[DONE", b'{"choices":[]} x', b"[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("data", MALFORMED)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_chunk(data)


def test_json_that_only_some_parsers_take() -> None:
    assert decode_chunk(b'{"choices":[{"text":"a","logprobs":-Infinity}],"x":NaN}').answer == "a"
    half = decode_chunk(b'{"choices":[{"text":"\\ud83e"}]}')
    assert half.has_text
    half.answer.encode()  # what is left can be written
    assert decode_chunk(b'{"choices":[{"text":"a\xff"}]}').answer == "a\ufffd"


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0), (7, 7), (7.0, 7), (-1, None), (7.5, None), (True, None), ("7", None), (None, None),
     (float("inf"), None), (float("nan"), None), (1e300, None), (10**30, None)],
)  # fmt: skip
def test_count(value: Any, number: int | None) -> None:
    assert count(value) == number


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "choices", "usage", "timings", "error", "id", "object", "content", "stop", "index", "delta", "text",
    "finish_reason", "token_ids", "tool_calls", "function", "reasoning", "message", "prompt_tokens_details",
)  # fmt: skip
events = st.recursive(
    json_values,
    lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=12,
)


@given(events)
def test_anything_gives_a_chunk_or_a_value_error(event: Any) -> None:
    try:
        chunk = decode(event)
    except ValueError:
        return
    assert isinstance(chunk.answer + chunk.reasoning + chunk.tool_text, str)


@given(st.text(), st.text(), st.randoms(use_true_random=False), st.sampled_from([None, 1, "\t"]))
def test_key_order_and_white_space_do_not_matter(
    answer: str, reasoning: str, rng: random.Random, indent: Any
) -> None:
    event = {
        "choices": [{"index": 1, "delta": {"content": answer, "reasoning": reasoning}, "finish_reason": "x"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
        "id": "r",
        "model": 'a "text":"b" model',
    }
    written = json.dumps(shuffled(event, rng), indent=indent, ensure_ascii=rng.random() < 0.5)
    try:
        data = written.encode()
    except UnicodeEncodeError:
        return
    assert decode_chunk(data) == decode(event)


def shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(k, shuffled(v, rng)) for k, v in value.items()]
        rng.shuffle(items)
        return dict(items)
    return [shuffled(v, rng) for v in value] if isinstance(value, list) else value
