"""What number an answer gives: written answers as models write them, with what a reader takes from them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.quality import numbers, plaintext
from loadgen.quality.numbers import flexible_number, reference_number, same_number, strict_number

# answer, strict, flexible
ANSWERS: list[tuple[str, str | None, str | None]] = [
    ("She has 3 + 4 = 7.\n#### 7", "7", "7"),
    ("#### 7\n", "7", "7"),
    ("####7", "7", "7"),
    ("#### $1,250.00", "1250", "1250"),
    ("#### -10", "-10", "-10"),
    ("#### −3", "-3", "-3"),
    ("#### 18 dollars", "18", "18"),
    ("#### **18**", "18", "18"),
    ("#### 25%", "25", "25"),
    ("#### $-5", "-5", "-5"),
    ("#### \\boxed{42}", "42", "42"),
    ("#### Step 1: add\n3 + 4 = 7\n#### Step 2: double\n14", None, "14"),
    ("#### 1. Add them\n3 + 4 = 7\n#### 2. Double\nThat makes 14.", None, "14"),
    ("#### 1. Add\n3 + 4\n#### 7", "7", "7"),
    ("### 2. Total\nThe total is 12.", None, "12"),
    ("#### 7\n\nQuestion: Tom has 9 pens?\n#### 9", "7", "7"),
    ("The answer is 18.", None, "18"),
    ("The answer is **18**.", None, "18"),
    ("The final answer is: $\\boxed{18}$", None, "18"),
    ("Thus $\\boxed{1{,}250}$ metres", None, "1250"),
    ("\\[ \\boxed{\\text{12 cm}} \\]", None, "12"),
    ("$$\\boxed{\\frac{3}{4}}$$", None, "0.75"),
    ("\\boxed{\\$45.50}", None, "45.5"),
    ("\\boxed{-\\frac{1}{3}}", None, "-1/3"),
    ("\\boxed{x = 9} after 2 steps", None, "9"),
    ("\\boxed{30\\%}", None, "30"),
    ("first \\boxed{3}, then \\boxed{8}", None, "8"),
    ("It costs $1,450,000.", None, "1450000"),
    ("It costs 1 450 000 euros.", None, "1450000"),
    ("It costs 1 450 euros.", None, "1450"),
    ("Das kostet 1.450,50 Euro.", None, "1450.5"),
    ("Die Antwort ist 18,5 Liter.", None, "18.5"),
    ("La respuesta es 42 manzanas para 3 personas.", None, "42"),
    ("La réponse est : 12", None, "12"),
    ("答案是 36。", None, "36"),
    ("答えは36個です。", None, "36"),
    ("정답은 15입니다", None, "15"),
    ("Ответ: 27 яблок", None, "27"),
    ("الإجابة ٤٢", None, "42"),
    ("The answer is 18", None, "18"),
    ("She earns **$18** each day.", None, "18"),
    ("So she pays **$1,080** for 12 months.", None, "1080"),
    ("The answer is $18 a day for 7 days.", None, "18"),
    ("The answer is 3 * 6 = 18.", None, "18"),
    ("The answer is 1/2.", None, "0.5"),
    ("He ate 2 1/2 pizzas.", None, "2.5"),
    ("He ate 2½ pizzas.", None, "2.5"),
    ("It falls to -10 degrees.", None, "-10"),
    ("20-3=17 and that is 17", None, "17"),
    ("There are 20-3 left", None, "3"),
    ("x = -4", None, "-4"),
    ("The temperature is - well, 4", None, "4"),
    ("- 5 apples\n- 6 pears", None, "6"),
    ("about 1.5 million people", None, "1500000"),
    ("$1.2 \\times 10^3$ metres", None, "1200"),
    ("It is .5 kg", None, "0.5"),
    ("It is 18.00.", None, "18"),
    ("He has 5.", None, "5"),
    ("He sold 12 eggs, kept 4, and so on...", None, "4"),
    ("I cannot answer that.", None, None),
    ("", None, None),
    ("eighteen", None, None),
    ("<think>maybe 5? #### 5</think>The answer is 6.", None, "6"),
    ("<think>maybe 5? it is 6", None, None),
    ("or 5</think>\n\n#### 6", "6", "6"),
    ("Answer: 12\n\nNote that 3 of them are red.", None, "12"),
    ("**Answer:** 12 eggs", None, "12"),
    ("Total = 5 + 7 = 12 minutes", None, "12"),
    ("１８", None, "18"),
    ("The answer is 1,000,000.5", None, "1000000.5"),
    ("The answer is 50 cents, or $0.50.", None, "50"),
    ("6'500 Franken", None, "6500"),
    ("#### 7 + 8 = 15", "15", "15"),
    ("Items 1,2,3", None, "3"),
    ("It costs Rs. 1,50,000", None, "150000"),
    ("### Final Answer\n\n**70,000** dollars profit.", None, "70000"),
    ("The final answer is\n\n**11**", None, "11"),
    ("The correct answer is 18, not 20.", None, "18"),
    ("####\n18", None, "18"),
    ("makes $9 * 2 = $<<9*2=18>>18.\n\n#### $18", "18", "18"),
    ("2^10 = 1024", None, "1024"),
]


@pytest.mark.parametrize(("answer", "strict", "flexible"), ANSWERS)
def test_written_answers(answer: str, strict: str | None, flexible: str | None) -> None:
    assert (strict_number(answer), flexible_number(answer)) == (strict, flexible)


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(ANSWERS) >= 60


@pytest.mark.parametrize("module", [numbers, plaintext])
def test_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert (result.attempted > 0, result.failed) == (True, 0)


@given(st.integers(-(10**9), 10**9))
def test_any_integer_is_read_as_written(n: int) -> None:
    for written in (str(n), f"{n:,}", f"{n:_}".replace("_", " ") if abs(n) >= 1000 else str(n)):
        assert strict_number(f"so\n#### {written}") == str(n)
        assert flexible_number(f"I think it is {written} apples.") == str(n)


@given(st.decimals(-(10**6), 10**6, places=2, allow_nan=False))
def test_any_price_is_read_as_written(price: object) -> None:
    assert same_number(flexible_number(f"The answer is ${price}."), reference_number(str(price)))


@given(st.text(max_size=200))
def test_no_text_breaks_it(text: str) -> None:
    assert same_number(flexible_number(text), strict_number(text)) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "9" * 50_000,
        "123 " * 15_000,
        "1." * 30_000,
        "1/0",
        "\\boxed{\\frac{1}{0}}",
        "3 × 10^999999999",
        "#### " * 9000,
    ],
)
def test_a_model_that_runs_away_breaks_nothing(text: str) -> None:
    assert same_number(flexible_number(text + "\n#### 7"), "7")
    flexible_number(text)


def test_thoughts_in_the_middle_and_without_a_beginning() -> None:
    assert plaintext.without_thinking("a<think>b</think>c<think>d") == "ac"
    assert plaintext.without_thinking("a</think>b<THINK>c</THINK>d") == "bd"


@pytest.mark.parametrize("answer", ["", "none", "#### ", "3 or 4"])
def test_an_item_without_a_number_is_refused(answer: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        reference_number(answer)
