"""What master and workers say arrives as it was said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.users import messages, worker
from loadgen.workload.prompt import Prompt

texts = st.text(max_size=40)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
prompts = st.builds(
    Prompt,
    pair=st.integers(-1, 10**6),
    text=texts,
    tokens=st.none() | st.integers(0, 10**6),
    messages=st.none()
    | st.lists(st.fixed_dictionaries({"role": texts, "content": texts}), min_size=1, max_size=3).map(tuple),
    output_tokens=st.none() | st.integers(1, 10**5),
    traffic_class=st.none() | texts,
    follow_ups=st.lists(texts, max_size=3).map(tuple),
)


@given(json_values)
def test_values(value: Any) -> None:
    assert messages.unpack(messages.pack(value)) == value


@given(st.lists(st.tuples(prompts, st.integers(1, 10**5)), max_size=5))
def test_prompts_with_their_answer_lengths(jobs: list[tuple[Prompt, int]]) -> None:
    rows = messages.unpack(messages.pack(messages.prompt_rows(jobs)))
    assert list(messages.prompts_from(rows)) == jobs


@given(st.lists(st.binary(min_size=1, max_size=60).map(lambda b: b.replace(b"\n", b" ")), max_size=30))
def test_lines_arrive_once_and_in_order(lines: list[bytes]) -> None:
    left, heard = list(lines), []
    while left:
        data, count = messages.pack_lines(left)
        heard += messages.unpack_lines(data)
        del left[:count]
    assert heard == lines


def test_a_message_is_bounded_and_never_empty() -> None:
    small, large = b"x" * (messages.ROWS_BYTES // 4), b"y" * (3 * messages.ROWS_BYTES)
    assert [messages.pack_lines(lines)[1] for lines in ([small] * 9, [large, small], [small, large])] == [
        4,
        1,
        1,
    ]
    assert messages.unpack_lines(None) == []


@pytest.mark.parametrize("data", [b"", b"hello", messages.pack([1])[:-4]])
def test_what_is_no_message_of_ours_is_said_so(data: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        messages.unpack(data)
    with pytest.raises(ValueError, match="cannot be read"):
        messages.unpack_lines(data)


def test_every_order_has_somebody_who_obeys() -> None:
    for kind in messages.TO_WORKER:
        assert hasattr(worker.WorkerSession, f"_on_{kind.removeprefix('loadgen_')}")
