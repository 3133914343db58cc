from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadgen.sim.text import generate
from loadgen.sim.tokens import EOS, detokenize, is_half, tokenize


def test_the_prompt_decides() -> None:
    a, b = tokenize("Tell me a story."), tokenize("Tell me a joke.")
    assert generate(a, 50) == generate(a, 50)
    assert generate(a, 50) != generate(b, 50)
    assert generate(a, 50, choice=1) != generate(a, 50)
    assert generate(a, 50, seed=1) != generate(a, 50)


def test_it_looks_like_words() -> None:
    text = detokenize(generate(tokenize("Tell me"), 100, ignore_eos=True, odd_share=0))
    assert text[0].isupper()
    assert all(w.strip(".,").isalpha() for w in text.split())


@given(st.integers(0, 300), st.integers(0, 50), st.booleans(), st.floats(0, 1), st.booleans())
def test_lengths(limit: int, min_tokens: int, ignore_eos: bool, odd: float, tricky: bool) -> None:
    out = generate([limit], limit, min_tokens=min_tokens, ignore_eos=ignore_eos, odd_share=odd, tricky=tricky)
    assert len(out) <= limit
    if ignore_eos:
        assert len(out) == limit
    if out:
        assert EOS not in out[:-1]
        assert out[-1] == EOS or len(out) == limit
        assert len(out) >= min(limit, min_tokens)
        assert not is_half(out[-1])
        detokenize(out).encode()


def test_most_answers_end_by_themselves_before_200_tokens() -> None:
    ends = [len(generate([i], 200)) < 200 for i in range(200)]
    assert 0.8 < sum(ends) / 200 < 1


def test_some_answers_are_not_ascii() -> None:
    texts = [detokenize(generate([i], 100, ignore_eos=True)) for i in range(30)]
    assert 5 < sum(not t.isascii() for t in texts) < 30
