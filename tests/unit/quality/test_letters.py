"""What option an answer picks: written answers as models write them, with what a reader takes from them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.quality import letters
from loadgen.quality.letters import picked_letter

CITIES = ("Rome", "Paris", "Oslo", "New Paris")

ANSWERS: list[tuple[str, str | None]] = [
    ("B", "B"),
    ("B.", "B"),
    ("(B)", "B"),
    ("[B]", "B"),
    ("b", "B"),
    ("(b)", "B"),
    ("**C**", "C"),
    ("**C.**", "C"),
    ("**(C)**", "C"),
    ("**C) Oslo**", "C"),
    ("`D`", "D"),
    ("A", "A"),
    ("A) Rome", "A"),
    ("A. Rome\n\nIt was founded long ago.", "A"),
    ("C: Oslo", "C"),
    ("B - Paris", "B"),
    ("C because it lies in Norway", "C"),
    ("The answer is D.", "D"),
    ("The answer is (D).", "D"),
    ("The answer is **D**.", "D"),
    ("The answer is: D", "D"),
    ("The correct answer is option B.", "B"),
    ("The correct answer is therefore (B) Paris.", "B"),
    ("The best choice is C, since A is wrong.", "C"),
    ("Answer: A", "A"),
    ("**Answer: A**", "A"),
    ("**Answer:** A", "A"),
    ("Answer: **A**", "A"),
    ("Answer: b.", "B"),
    ("answer is $\\boxed{B}$", "B"),
    ("\\boxed{\\text{C}}", "C"),
    ("\\boxed{(D)}", "D"),
    ("\\boxed{A}. Rome", "A"),
    ("A looks right, but the answer is B.", "B"),
    ("The answer is A. Wait, no. The answer is B.", "B"),
    ("The answer is not A but C.", "C"),
    ("The answer is not A. The answer is C.", "C"),
    ("Option A is in Italy. Option B is in France. So the answer is option B.", "B"),
    ("C is correct.", "C"),
    ("(C) is the right one.", "C"),
    ("A is incorrect, B is incorrect, C is correct, D is incorrect.", "C"),
    ("A. Rome - wrong\nB. Paris - wrong\nC. Oslo - right\n\nAnswer: C", "C"),
    ("A. Rome\nB. Paris\nC. Oslo\nD. New Paris", None),
    ("Both A and B", None),
    ("A and B", None),
    ("A or B", None),
    ("A, B", None),
    ("The answer is A and C.", None),
    ("The answer is A or C.", None),
    ("The answers are A, B and D.", None),
    ("I do not know.", None),
    ("None of these.", None),
    ("", None),
    ("E", None),
    ("The answer is E.", None),
    ("A bird in the hand.", None),
    ("I think it is hard to say.", None),
    ("Paris", "B"),
    ("New Paris", "D"),
    ("It is Oslo.", "C"),
    ("The capital is Paris, not Rome.", None),
    ("Die richtige Antwort ist C.", "C"),
    ("Die Antwort lautet: B", "B"),
    ("La respuesta correcta es la opción D.", "D"),
    ("La réponse est B.", "B"),
    ("La risposta è C", "C"),
    ("A resposta é D.", "D"),
    ("正确答案是B。", "B"),
    ("答案：C", "C"),
    ("正解はBです。", "B"),
    ("정답은 A입니다", "A"),
    ("Ответ: D", "D"),
    ("الإجابة هي C", "C"),
    ("Ｃ", "C"),
    ("<think>A? The answer is A.</think>B", "B"),
    ("<think>The answer is A", None),
    ("maybe A</think>\nAnswer: B", "B"),
    ("I would go with (C) here.", "C"),
    ("Let us see. Norway's capital is Oslo, so I choose C.", "C"),
    ("The answer is a matter of taste.", None),
    ("Answer: C\n\nQuestion: What is next?\nAnswer: D", "C"),
    ("Answer: Oslo", "C"),
    ('The answer is "B".', "B"),
    ("Answer is C) Oslo", "C"),
    ("The correct answer is:\n\n**B. Paris**", "B"),
    ("Answer: **C**.\n\nThe answer A is wrong because it lies elsewhere.", "C"),
    ("Vitamin C is needed.", None),
    ("Vitamin C is needed. The answer is B.", "B"),
    ("The answer is definitely not A.", None),
    ("It can't be A, so B.", "B"),
    ("The answer is neither A nor B, it is C.", "C"),
    ("A: no. B: no. C: yes", None),
    ("$B$", "B"),
    ("Answer: <D>", "D"),
    ("Answer: A/B", None),
    ("Answer: B, because C and D are wrong.", "B"),
    ("Statement 1 is true. Statement 2 is false. Answer: C", "C"),
]


@pytest.mark.parametrize(("answer", "letter"), ANSWERS)
def test_written_answers(answer: str, letter: str | None) -> None:
    assert picked_letter(answer, CITIES) == letter


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(ANSWERS) >= 60


def test_docstrings() -> None:
    result = doctest.testmod(letters)
    assert (result.attempted > 0, result.failed) == (True, 0)


def test_more_options_have_more_letters() -> None:
    ten = [f"option number {n}" for n in range(10)]
    assert picked_letter("The answer is J.", ten) == "J"
    assert picked_letter("The answer is I.", ten) == "I"
    assert picked_letter("I think so.", ten) is None


def test_letters_as_choices_and_quantities() -> None:
    assert picked_letter("5", ["4", "5", "50", "6"]) == "B"
    assert picked_letter("It stays at 20 °C, or 293 K. The answer is A.", ["hot", "cold"]) == "A"


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    assert picked_letter(text, CITIES) in ("A", "B", "C", "D", None)
