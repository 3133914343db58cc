"""The number that an answer to a word problem (GSM8K) ends in: strictly (`#### n`, as the set's own solutions
are written) and flexibly (wherever it stands), the two ways in which lm-evaluation-harness scores the set.

Flexible looks, in this order, for: `#### n`, a LaTeX box, the number after "answer is" or "Answer:", a number
in bold in the last line, the last number. lm-evaluation-harness takes the last number only.
"""

from __future__ import annotations

import re
from fractions import Fraction

from .plaintext import answer_text

_DIGITS = (
    r"(?:\d{1,3}(?:[ \u00a0\u202f']\d{3}){1,8}(?!\d)(?:[.,]\d+)?"  # 1 250,5
    r"|\d{1,3}(?:,\d{2,3}){0,8},\d{3}(?!\d)(?:\.\d+)?"  # 1,250.5 and 1,50,000
    r"|\d{1,3}(?:\.\d{3}){1,8},\d+"  # 1.250,5
    r"|(?<!\d,)\d+,\d+(?!,?\d)"  # 18,5, but of 1,2,3 each is a number
    r"|\d+(?:\.\d+){0,8}|\.\d+)"
)
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w)\]}}.%])-(?:[$€£]\s?)?|(?<=[=:(])\s*-\s*[$€£]?|[$€£]\s?-)?"
    rf"(?P<whole>{_DIGITS})"
    rf"(?:(?P<top>\s\d+)?/(?P<bottom>\d+(?![\d.]))|\s?(?:x|×|\*)\s?10\^\{{?(?P<power>-?\d+)\}}?"
    rf"|\s(?P<scale>thousand|million|billion)\b)?",
    re.IGNORECASE,
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_MARK = re.compile(r"####(?!#)[ \t]*(?P<rest>[^\n]*)")
_HEADING = re.compile(r"\**\d+[.):]\**\s+\S|\**[^\W\d]")  # "#### 2. Add them", "#### Step 2": no answer
_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{")
_PHRASE = re.compile(
    r"(?:(?:answer|result|antwort|ergebnis|respuesta|réponse|risposta|resposta|ответ)\W{0,4}\s?"
    r"(?:is|are|would be|equals|ist|es|est|è|é|:|=|-)|"
    r"(?:答案|回答|答え|正解)\s?(?:是|为|は|:|=)?|(?:정답|답)[은는]?\s?:?)",
    re.IGNORECASE,
)
_BOLD = re.compile(r"\*\*\s*(?:[$€£]|\\\$)?\s?(-?\s?[$€£]?[\d.][^*\n]*)\*\*")


def strict_number(text: str) -> str | None:
    """The number after the last `####` of an answer, in plain form ("1250", "-3", "18.5", "1/3"); None if no
    line carries one.

    >>> strict_number("so 6 * 3 = 18\\n#### $1,018.00"), strict_number("It is 18.")
    ('1018', None)
    """
    for mark in reversed(list(_MARK.finditer(_readable(text)))):
        rest = _plain_latex(mark["rest"])
        if not _HEADING.match(rest) and (found := _NUMBER.search(rest.rsplit("=", 1)[-1])):
            return _written(_value(found))
    return None


def flexible_number(text: str) -> str | None:
    """The number that an answer gives, wherever it stands, in plain form; None if it has no number.

    >>> flexible_number("The answer is **$1,250** for 3 months."), flexible_number("4 eggs, 2 left")
    ('1250', '2')
    """
    if strict := strict_number(text):
        return strict
    text = _readable(text)
    if boxes := list(_BOX.finditer(text)):
        inside = list(_NUMBER.finditer(_plain_latex(_braced(text, boxes[-1].end()))))
        if inside:
            return _written(
                _value(inside[-1] if len(inside) > 1 and "=" in text[boxes[-1].end() :] else inside[0])
            )
    text = _plain_latex(text)
    phrases = list(_PHRASE.finditer(text))
    for phrase in reversed(phrases[-20:]):
        line = re.split(
            r"\n\s*\n|(?<=[^\d\s])[.!?](?:\s|$)|(?<=\d)[.!?](?:\s|$)", text[phrase.end() :].lstrip(" *\n")
        )[0]
        if "=" in line:
            line = line.rsplit("=", 1)[1]
        if found := _NUMBER.search(line):
            return _written(_value(found))
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and (bold := _BOLD.findall(lines[-1])):
        text = bold[-1].rsplit("=", 1)[-1]
        if found := _NUMBER.search(text):
            return _written(_value(found))
    numbers = list(_NUMBER.finditer(text))
    return _written(_value(numbers[-1])) if numbers else None


def reference_number(answer: str) -> str:
    """The number of an item's own answer: a whole solution that ends in `#### n`, or a number alone. Raises
    ValueError if it is neither.

    >>> reference_number("3*6=<<3*6=18>>18 eggs\\n#### 2,125"), reference_number("1/2")
    ('2125', '0.5')
    """
    alone = answer.rsplit("####", 1)[-1].strip()
    found = _NUMBER.fullmatch(answer_text(alone).strip("$€£% ")) or _NUMBER.fullmatch(answer_text(alone))
    if found is None:
        raise ValueError(f"is no number and has none after ####: {alone[:60]!r}")
    return _written(_value(found))


def same_number(a: str | None, b: str | None) -> bool:
    """Whether two numbers in plain form are equal; no number equals none.

    >>> same_number("0.5", "1/2"), same_number("18", None)
    (True, False)
    """
    return a is not None and b is not None and Fraction(a) == Fraction(b)


def _readable(text: str) -> str:
    """The answer's text without digits that go on and on, which are a model's fault and no number."""
    return re.sub(r"\d{40,}", " ", answer_text(text))


def _value(found: re.Match[str]) -> Fraction:
    value = _decimal(found["whole"])
    if found["bottom"] and int(found["bottom"]):
        if found["top"]:
            value += Fraction(int(found["top"]), int(found["bottom"]))
        else:
            value /= int(found["bottom"])
    if found["power"]:
        value *= Fraction(10) ** max(-30, min(30, int(found["power"])))
    if found["scale"]:
        value *= _SCALES[found["scale"].lower()]
    return -value if "-" in (found["sign"] or "") else value


def _decimal(digits: str) -> Fraction:
    """1,250.50 and 1.250,50 and 1 250 and 18,5 read as they are meant; 1.250 has a decimal point."""
    digits = re.sub(r"[\s']", "", digits).rstrip(".,")
    if "," in digits and "." in digits:
        thousands = "," if digits.rindex(".") > digits.rindex(",") else "."
        digits = digits.replace(thousands, "").replace(",", ".")
    elif digits.count(",") == 1 and not re.fullmatch(r"\d{1,3},\d{3}", digits):
        digits = digits.replace(",", ".")
    else:
        digits = digits.replace(",", "")
    if digits.count(".") > 1:
        digits = (
            digits.replace(".", "") if re.fullmatch(r"\d{1,3}(\.\d{3})+", digits) else digits.split(".")[0]
        )
    return Fraction(digits if digits[0] != "." else "0" + digits)


def _written(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or value.denominator > 10**9:
        return str(value)  # has no finite decimal form
    return f"{float(value):.12f}".rstrip("0")


def _braced(text: str, start: int) -> str:
    """What stands in the braces that open before `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def _plain_latex(text: str) -> str:
    text = re.sub(r"(\d)\s*\\[dt]?frac\s*\{(\d+)\}\s*\{(\d+)\}", r"\1 \2/\3", text)
    text = re.sub(r"\\[dt]?frac\s*\{(-?\d+)\}\s*\{(\d+)\}", r"\1/\2", text)
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}", r" \1", text)
    text = re.sub(r"(?<=\d)(?:\\[,!;:]|\{,\})(?=\d{3})", ",", text).replace(r"\times", "×")
    return (
        text.replace("\\$", "$").replace("\\%", "%").replace("\\(", "").replace("\\)", "").replace("\\ ", " ")
    )
