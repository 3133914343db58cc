import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.workload.prompt import Prompt
from loadgen.workload.prompts import PromptError, PromptMaker
from loadgen.workload.prose import sentences, words
from loadgen.workload.salt import salted_messages, salts

TEMPLATE = 31  # tokens around an empty message in the counters below


def pieces(prompt: Prompt) -> int:
    """Like a usual vocabulary: words up to six letters are one token, longer ones more, marks their own."""
    found = re.findall(r" ?[a-zA-Z]+|[0-9]|[^a-zA-Z0-9 ]", prompt.text)
    return TEMPLATE + sum(1 + (len(f) - 1) // 7 for f in found)


def quarters(prompt: Prompt) -> int:
    return TEMPLATE + -(-len(prompt.text) // 4)


def characters(prompt: Prompt) -> int:
    return TEMPLATE + len(prompt.text)


@pytest.mark.parametrize("count", [pieces, quarters, characters], ids=lambda c: c.__name__)
@pytest.mark.parametrize("target", [50, 64, 333, 2000])
def test_every_prompt_has_exactly_the_asked_length(count, target):
    maker = PromptMaker(count, target, seed=1, run_salt="r")
    for pair in range(20):
        prompt = maker.make(pair)
        assert count(prompt) == target == prompt.tokens
        assert prompt.pair == pair
    assert maker.exact is True


@pytest.mark.parametrize("target", [50, 500, 2000])
def test_three_counts_a_prompt_are_enough(target):
    maker = PromptMaker(pieces, target, seed=1, run_salt="r")
    for pair in range(64):
        maker.make(pair)
    assert maker.counts <= 3 * 64


@given(target=st.integers(45, 400), seed=st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_any_length_from_the_template_up_is_met(target, seed):
    assert pieces(PromptMaker(pieces, target, seed=seed, run_salt="r").make(0)) == target


def test_the_seed_gives_the_same_words_and_the_run_its_own_salts():
    a = PromptMaker(pieces, 300, seed=7, run_salt="monday").make(3)
    b = PromptMaker(pieces, 300, seed=7, run_salt="tuesday").make(3)
    other = PromptMaker(pieces, 300, seed=8, run_salt="monday").make(3)
    assert a.text[:9] != b.text[:9]
    assert a.text[10:800] == b.text[10:800]
    assert a.text[10:800] != other.text[10:800]
    assert a == PromptMaker(pieces, 300, seed=7, run_salt="monday").make(3)


def test_a_target_below_the_template_names_the_least_possible_length():
    maker = PromptMaker(pieces, 20, seed=1, run_salt="r")
    with pytest.raises(PromptError, match="20 tokens are not possible") as e:
        maker.make(0)
    least = int(re.search(r"ask for (\d+) or more", str(e.value)).group(1))
    assert least == maker.least > TEMPLATE
    assert "\n" not in str(e.value)


def test_a_target_below_the_template_may_be_lengthened_to_the_least():
    maker = PromptMaker(pieces, 50, seed=1, run_salt="r", lengthen=True)
    assert [maker.make(pair, target).tokens for pair, target in enumerate((3, 60, 20))][1] == 60
    assert maker.lengthened == 2
    assert maker.least is not None
    assert abs(maker.make(3, 1).tokens - maker.least) <= 2  # salts differ by a token or two


def test_without_a_tokenizer_the_length_is_approximate_and_says_so():
    maker = PromptMaker(lambda p: None, 400, seed=1, run_salt="r")
    prompt = maker.make(0)
    assert maker.exact is False
    assert prompt.tokens is None
    assert 300 < pieces(prompt) < 500
    maker.make(1)
    assert maker.counts == 1


def test_two_counts_of_other_texts_make_the_approximation_good():
    maker = PromptMaker(lambda p: None, 2000, seed=1, run_salt="r")
    maker.make(0)
    counted = []
    maker.calibrate(lambda p: counted.append(p.text[:9]) or pieces(p))
    prompts = [maker.make(i) for i in range(1, 20)]
    assert all(abs(pieces(p) - 2000) < 60 for p in prompts)
    assert len(counted) == 2
    assert not set(counted) & {p.text[:9] for p in prompts}, "what was counted is in the server's cache"


def test_a_long_prompt_repeats_no_passage():
    prompt = PromptMaker(pieces, 32_000, seed=1, run_salt="r").make(0)
    assert pieces(prompt) == 32_000
    told = prompt.text.split(" ")
    passages = ["".join(told[i : i + 40]) for i in range(len(told) - 40)]
    assert len(set(passages)) == len(passages)


def test_the_shipped_text_is_plain_ascii_and_varied():
    all_of_them = sentences()
    assert sum(len(s) for s in all_of_them) > 20_000
    assert len(set(all_of_them)) == len(all_of_them) > 250
    assert all(s.isascii() and s[-1] in ".?!" for s in all_of_them)


def test_one_pass_over_the_text_says_every_sentence_once():
    length = sum(len(s.split(" ")) for s in sentences())
    first_pass = list(itertools.islice(words("s"), length))
    assert sorted(first_pass) == sorted(w for s in sentences() for w in s.split(" "))


def test_salts_are_unique_and_differ_from_the_first_letter_on():
    some = list(itertools.islice(salts("r"), 5000))
    assert len(set(some)) == 5000
    assert all(re.fullmatch(r"[a-z2-9]{8}:", s) for s in some)
    assert len({s[0] for s in some}) == 32
    assert not set(some) & set(itertools.islice(salts("r2"), 5000))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([{"role": "user", "content": "hi"}], [{"role": "user", "content": "S: hi"}]),
        (
            [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
            [{"role": "system", "content": "S: be kind"}, {"role": "user", "content": "hi"}],
        ),
        (
            [{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "what?"}]}],
            [{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "S: what?"}]}],
        ),
        (
            [{"role": "assistant", "content": None}],
            [{"role": "system", "content": "S:"}, {"role": "assistant", "content": None}],
        ),
    ],
)
def test_a_conversation_is_salted_as_early_as_possible(messages, expected):
    before = str(messages)
    assert list(salted_messages(tuple(messages), "S:")) == expected
    assert str(messages) == before
