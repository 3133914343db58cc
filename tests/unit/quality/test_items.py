"""Items: the shipped ones, a person's own with every mistake named, full sets from a folder, subsets."""

from __future__ import annotations

import doctest
import json
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.quality import prompts, scoring
from loadgen.quality.items import (
    Item,
    ItemError,
    folder_items,
    mmlu_examples,
    own_items,
    parse_items,
    pick,
    shipped_items,
)
from loadgen.quality.prompts import max_tokens, messages
from loadgen.quality.scoring import score


@pytest.mark.parametrize("module", [prompts, scoring])
def test_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_the_package_holds_so_many() -> None:
    assert [len(shipped_items(task)) for task in ("gsm8k", "mmlu", "longform")] == [200, 228, 60]
    assert set(Counter(item.subject for item in shipped_items("mmlu")).values()) == {4}
    examples = mmlu_examples()
    assert {len(five) for five in examples.values()} == {5}
    assert set(examples) == {item.subject for item in shipped_items("mmlu")}
    with pytest.raises(ItemError, match="no task 'arc'"):
        shipped_items("arc")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LICENSE-gsm8k", "Copyright (c) 2021 OpenAI"),
        ("LICENSE-mmlu", "Copyright (c) 2020 Dan Hendrycks"),
        ("LICENSE-longwrite", "Apache License"),
        ("NOTICE.md", "LongBench-Write"),
    ],
)
def test_each_set_comes_with_its_licence(name: str, words: str) -> None:
    assert words in (resources.files("loadgen.quality") / "data" / name).read_text(encoding="utf-8")


def test_every_shipped_answer_written_as_asked_is_right() -> None:
    """The set's own solutions, and "Answer: X", are read as right by the extraction."""
    for item in shipped_items("gsm8k"):
        assert item.numeric
        row = score(item, str(item.answer), "stop")
        assert (row["strict"], row["flexible"], row["correct"]) == (True, True, True), item.id
        said = str(item.answer).rsplit("####", 1)[-1].strip()
        assert score(item, f"In 3 steps: the answer is {said}.", "stop")["flexible"], item.id
    for item in shipped_items("mmlu"):
        right = "ABCD"[int(str(item.answer))]
        for written in (f"Answer: {right}", f"**{right}**", f"The answer is ({right}).", right):
            assert score(item, written, "stop")["correct"], (item.id, written)
        wrong = "ABCD"[(int(str(item.answer)) + 1) % 4]
        assert not score(item, f"Answer: {wrong}", "stop")["correct"], item.id


def test_an_answer_that_was_cut_is_wrong_and_said_to_be_cut() -> None:
    row = score(Item("gsm8k", "1", "6 * 3?", "18"), "18", "length")
    assert row == {"truncated": True, "extracted": "18", "strict": False, "flexible": False, "correct": False}
    row = score(Item("mmlu", "1", "?", 1, ("x", "y")), "B", "length")
    assert (row["truncated"], row["correct"]) == (True, False)


def test_own_answers_in_words() -> None:
    item = Item("capitals", "1", "Capital of Norway?", "Oslo")
    for text in (
        "Oslo",
        "Oslo.",
        "Answer: **Oslo**",
        "It lies in the south.\nAnswer: oslo",
        "The answer is Oslo.",
    ):
        assert score(item, text, "stop")["correct"], text
    for text in ("", "Bergen", "Answer: Oslo or Bergen"):
        assert not score(item, text, "stop")["correct"], text


def test_long_form_has_repetition_and_no_right_or_wrong() -> None:
    row = score(shipped_items("longform")[0], "<think>hm</think>" + "so it goes on " * 20, "stop")
    assert "correct" not in row
    assert isinstance(row["repetition"], dict)
    assert row["repetition"]["tail_loop"] is True


def own(**row: object) -> str:
    return json.dumps({"question": "?"} | row)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"choices": ["x", "y"], "answer": 1}, 1),
        ({"choices": ["x", "y"], "answer": "y"}, 1),
        ({"choices": ["x", "y"], "answer": "b"}, 1),
        ({"choices": ["B", "A"], "answer": "B"}, 0),
        ({"choices": [3, 4.5], "answer": "4.5"}, 1),
        ({"answer": 18}, "18"),
        ({"answer": "Oslo"}, "Oslo"),
        ({"words": 500}, None),
    ],
)
def test_own_items(row: dict[str, object], answer: object, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(own(**row) + "\n\n" + own(id="second", **row) + "\n", encoding="utf-8")
    items = own_items(path)
    assert [(i.task, i.id, i.answer) for i in items] == [
        ("mine", "mine-0", answer),
        ("mine", "second", answer),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "mine holds no items."),
        ("{", "mine, line 1: is no JSON."),
        ("[1]", "mine, line 1: is no JSON object."),
        ('{"answer": 1}', "mine, line 1: has no question."),
        (own(id="a") + "\n" + own(id="a"), "mine, line 2: the id 'a' is there already."),
        (own(id=[1]), "mine, line 1: the id is no text."),
        (own(choices=["x"], answer=0), "mine, line 1: choices is no list of 2 to 26 texts."),
        (own(choices=["x", None], answer=0), "mine, line 1: a choice is no text."),
        (own(choices=["x", "y"], answer=2), "mine, line 1: the answer 2 is none of the 2 choices."),
        (own(choices=["x", "y"]), "mine, line 1: the answer None is none of the 2 choices."),
        (own(choices=["x", "y"], answer=True), "mine, line 1: the answer True is none of the 2 choices."),
        (own(answer=["x"]), "mine, line 1: the answer is neither a text nor a number."),
        (own(words=0), "mine, line 1: words, the wanted length, is no whole number above 0."),
        (own(subject=3), "mine, line 1: the subject is no text."),
    ],
)
def test_mistakes_in_own_items_are_named(text: str, sentence: str) -> None:
    with pytest.raises(ItemError) as caught:
        parse_items(text, "own", "mine")
    assert str(caught.value) == sentence


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes(b"\xff\xfe")
    for path in (tmp_path / "none.jsonl", tmp_path, tmp_path / "latin.jsonl"):
        with pytest.raises(ItemError, match="cannot be read"):
            own_items(path)


def test_full_sets_from_a_folder_have_the_ids_of_the_subsets(tmp_path: Path) -> None:
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "test.jsonl").write_text(
        '{"question": "1 + 1?", "answer": "<<1+1=2>>2\\n#### 2"}\n{"question": "1+2?", "answer": "#### 3"}\n'
    )
    (tmp_path / "mmlu" / "test").mkdir(parents=True)
    (tmp_path / "mmlu" / "test" / "logic_test.csv").write_text(
        '"Is ""x""\nso?",yes,no,"a, b",none,C\nq,1,2,3,4,A\n'
    )
    assert [item.id for item in folder_items(tmp_path, "gsm8k")] == ["gsm8k-test-0", "gsm8k-test-1"]
    assert folder_items(tmp_path / "gsm8k", "gsm8k")[1].answer == "#### 3"
    first, second = folder_items(tmp_path, "mmlu")
    assert first == Item("mmlu", "mmlu-logic-0", 'Is "x"\nso?', 2, ("yes", "no", "a, b", "none"), "logic")
    assert second.id == "mmlu-logic-1"
    (tmp_path / "mmlu" / "test" / "bad_test.csv").write_text("only,three,fields\n")
    with pytest.raises(ItemError, match=r"bad_test.csv, row 1: is not question,A,B,C,D,letter"):
        folder_items(tmp_path, "mmlu")
    for task, sentence in (("gsm8k", "does not exist"), ("longform", "no full set")):
        with pytest.raises(ItemError, match=sentence):
            folder_items(tmp_path / "elsewhere", task)


@given(st.integers(0, 240), st.sampled_from(["gsm8k", "mmlu"]))
def test_a_subset_is_always_the_same_and_holds_the_smaller_ones(n: int, task: str) -> None:
    items = shipped_items(task)
    chosen = pick(items, n)
    assert len(chosen) == min(n, len(items))
    assert chosen == pick(items, n)
    assert [i for i in items if i in set(chosen)] == chosen
    assert set(chosen) <= set(pick(items, n + 1))
    counts = Counter(i.subject for i in chosen)
    if task == "mmlu" and n >= 57:
        assert max(counts.values()) - min(counts.values()) <= 1


def test_a_prompt_with_examples() -> None:
    item = Item("mmlu", "1", "Which?", 0, ("x", "y"), "high_school_physics")
    (message,) = messages(item, [Item("mmlu", "2", "What?", 1, ("u", "v"))])
    assert message["role"] == "user"
    assert message["content"].endswith("What?\nA. u\nB. v\nAnswer: B\n\nWhich?\nA. x\nB. y")
    assert "high school physics" in message["content"]


def test_prompts_of_the_other_kinds() -> None:
    assert "#### <number>" in messages(Item("gsm8k", "1", "1 + 1?", "#### 2"))[0]["content"]
    assert "Answer: <answer>" in messages(Item("own", "1", "Who?", "Ada"))[0]["content"]
    assert messages(Item("longform", "1", "Write."))[0]["content"] == "Write."
    assert max_tokens(Item("longform", "1", "Write.", words=12_000)) == 16_384
    assert max_tokens(Item("longform", "1", "Write.", words=100)) == 512
