"""Repetition against planted loops and clean text."""

from __future__ import annotations

import doctest
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.quality import repetition
from loadgen.quality.repetition import longest_repeat, measure, rep, tail


def prose(n: int, seed: int = 1) -> list[str]:
    """n words as unevenly frequent as those of a language."""
    return random.Random(seed).choices(
        [f"w{k}" for k in range(3000)], weights=[1 / (k + 1) for k in range(3000)], k=n
    )


def test_docstrings() -> None:
    result = doctest.testmod(repetition)
    assert (result.attempted > 0, result.failed) == (True, 0)


@pytest.mark.parametrize("seed", range(10))
def test_clean_prose_is_not_flagged(seed: int) -> None:
    found = measure(" ".join(prose(1500, seed)))
    assert (found.tail_loop, found.repetitive, found.tokens) == (False, False, 1500)
    assert (found.longest_repeat_tokens < 20, found.rep_4 < 0.05) == (True, True)


@pytest.mark.parametrize("length", [3, 4, 17, 60, 90])
@pytest.mark.parametrize("cut", [0, 1])
def test_a_planted_loop_at_the_end_is_flagged(length: int, cut: int) -> None:
    """The last part of the text is one phrase over and over, cut anywhere by max_tokens."""
    phrase = [f"loop{k}" for k in range(length)]
    tokens = prose(1000) + phrase * 4
    found = measure(" ".join(tokens[: len(tokens) - cut]))
    assert (found.tail_loop, found.repetitive) == (True, True)
    assert found.tail_times == (4 if not cut else 3)


@pytest.mark.parametrize(
    ("end", "times"),
    [
        ("a b c a b c", 0),  # once again only
        ("a b c a b c a b c", 3),
        ("no no no no no no no no no no", 0),  # one word, ten times
        ("no " * 51, 0),
        ("no " * 52, 52),
        ("ha ho " * 20, 0),
        ("ha ho " * 52, 52),
        ("I say no no no no . " * 3 + "I say no no no no", 3),
        ("!" * 200, 200),
    ],
)
def test_tails(end: str, times: int) -> None:
    assert measure("x y z " + end).tail_times == pytest.approx(times, abs=1 if times > 50 else 0)


def test_a_paragraph_said_twice_is_found_in_the_middle() -> None:
    once = [f"p{k}" for k in range(55)]
    found = measure(" ".join(prose(300, 1) + once + prose(300, 2) + once + prose(300, 3)))
    assert found.longest_repeat_tokens == 55
    assert (found.tail_loop, found.repetitive) == (False, True)


def test_a_short_text_is_judged_by_its_end_alone() -> None:
    once = [f"p{k}" for k in range(60)]
    found = measure(" ".join([*once, "and", *once, "end"]))
    assert (found.tokens <= 500, found.longest_repeat_tokens, found.repetitive) == (True, 60, False)


def test_rep_4_of_known_texts() -> None:
    assert rep(list("abcd"), 4) == 0.0
    assert rep(list("aaaaaaa"), 4) == 0.75  # aaaa four times
    assert rep([], 4) == rep(list("abc"), 4) == 0.0


@settings(max_examples=60)
@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_the_longest_repeat_is_what_looking_everywhere_finds(tokens: list[str]) -> None:
    n = len(tokens)
    slow = max(
        (
            length
            for length in range(1, n // 2 + 1)
            for a in range(n - 2 * length + 1)
            for b in range(a + length, n - length + 1)
            if tokens[a : a + length] == tokens[b : b + length]
        ),
        default=0,
    )
    assert longest_repeat(tokens) == slow


@given(st.text(max_size=300))
def test_no_text_breaks_it(text: str) -> None:
    row = measure(text).to_row()
    assert 0 <= float(str(row["rep_4"])) <= 1


def test_an_empty_tail() -> None:
    assert tail([]) == ([], 0)
    assert measure("").to_row() == {
        "tokens": 0, "tail_loop": False, "longest_repeat_tokens": 0, "rep_4": 0.0, "repetitive": False,
    }  # fmt: skip
