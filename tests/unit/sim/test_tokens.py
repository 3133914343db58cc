from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.sim.tokens import chat_prompt, detokenize, is_half, pieces, tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Hello world", ["Hello", " world"]),
        ("understanding", ["under", "stand", "ing"]),
        ("a  b", ["a", " ", " b"]),
        ("x1.5, y", ["x", "1", ".", "5", ",", " y"]),
        ("naïve", ["na", "ï", "ve"]),
        ("日本", ["日", "本"]),
        ("a 🦊", ["a", " ", "", "🦊"]),
        ("\n\t", ["\n", "\t"]),
        ("(ok)", ["(", "ok", ")"]),
    ],
)
def test_pieces(text: str, expected: list[str]) -> None:
    assert pieces(tokenize(text)) == expected


@given(st.text())
def test_reversible(text: str) -> None:
    assert detokenize(tokenize(text)) == text
    assert detokenize(tokenize(text, special=True)) == text
    assert "".join(pieces(tokenize(text))) == text


@given(st.text())
def test_ids_fit_four_bytes(text: str) -> None:
    assert all(0 <= t < 2**31 for t in tokenize(text))


@given(st.lists(st.integers(-(2**31), 2**40), max_size=20))
def test_any_id_turns_into_some_text(ids: list[int]) -> None:
    detokenize(ids)


def test_special_tokens_only_when_asked() -> None:
    assert len(tokenize("<|im_end|>", special=True)) == 1
    assert len(tokenize("<|im_end|>")) > 1


def test_the_template_takes_30_tokens_24_of_them_first() -> None:
    """As SmolLM2's template does in the captures: "Hi" is a prompt of 31 tokens."""
    ids = tokenize(chat_prompt([{"role": "user", "content": "Hi"}]), special=True)
    assert len(ids) == 31
    assert pieces(ids)[24] == "Hi"


def test_own_system_line_replaces_the_templates() -> None:
    text = chat_prompt([{"role": "system", "content": "S"}, {"role": "user", "content": [{"text": "U"}]}])
    assert text == ("<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n")


def test_an_emoji_is_two_halves() -> None:
    first, second = tokenize("🦊")
    assert is_half(first)
    assert not is_half(second)
