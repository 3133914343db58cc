"""The option that an answer to a multiple-choice question (MMLU) picks: A, B, C, ..., however it is written.

In this order: a LaTeX box, "the answer is C" in several languages, "C is correct", a letter that begins the
answer, a letter in bold, the only letter that is named, the words of exactly one option. An answer that picks
several options, or none, has no letter: guessing would flatter the engine that rambles.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from .plaintext import answer_text

_BOX = re.compile(
    r"\\(?:boxed|fbox)\s*\{\s*(?:\\(?:text|mathrm|mathbf|textbf)\s*\{)?\s*\(?([A-Za-z])\)?\s*[}.:)]"
)
_LEAD = r"[\s*_`\"'$:\-(\[{<]*"
_WORDS = (
    r"(?:answer|choice|option|antwort|lösung|respuesta|opción|réponse|risposta|resposta|ответ|"
    r"答案|回答|答え|正解|선택|정답|الإجابة|الجواب)"
)
_VERBS = (
    r"(?:\s*(?:(?:is|would be|should be|must be|will be|ist|lautet|es|est|è|é|是|为|選|は|은|는|هي|هو|"
    r"therefore|thus|then|clearly|definitely|most likely|probably|option|choice|letter|the|"
    r"la|opción|not|correct|选项|选)(?=[\s*:(\"'A-Z]|$)|[:=\-–]|->|→))*"
)
_NOT = r"(?:not\s+\(?[A-Z]\)?\s*,?\s*but\s+(?:rather\s+)?)?"
_END = r"(?!['0-9_A-Za-z\u00c0-\u024f\u0400-\u04ff])"  # Chinese or Korean may follow without a space
_CHOSEN = (
    r"(?:^|[.,:;!?>→({\[*\n]|\b(?:is|be|as|but|likely|probably|definitely|clearly|so|then|thus|hence|therefore|with|for|choose|chose|pick|select|say|"
    r"option|choice|letter)\b)"
)
_SEVERAL = re.compile(
    r"[\s*)\]]*(?:,|/|&|\band\b|\bor\b|\bund\b|\by\b)\s*(?:or\s+|and\s+)?[(*]*([A-Z])"
    r"(?=[\s*]*(?:[).,;]|$|and\b|or\b))"
)


def picked_letter(text: str, choices: Sequence[str]) -> str | None:
    """The letter of the option that an answer picks, "A" for the first of `choices`; None if it picks none or
    several.

    >>> cities = ["Rome", "Paris", "Oslo", "Bern"]
    >>> picked_letter("**B**", cities), picked_letter("The answer is (C).", cities)
    ('B', 'C')
    >>> picked_letter("A or B", cities)
    """
    text = re.sub(r"\b[Nn]either\s+\(?[A-Z]\)?\s+nor\s+\(?[A-Z]\)?(?!\w)", "", answer_text(text))
    letters = string.ascii_uppercase[: len(choices)]
    upper = f"[{letters}]"
    if boxes := _BOX.findall(text):
        return _known(boxes[-1], letters)
    marked = _after_phrase(text, letters) or _called_correct(text, upper)
    if marked:
        return _known(marked, letters)
    if re.search(rf"\b(?:[Bb]oth|[Ee]ither)\s+\(?{upper}\b", text):
        return None
    for finder in (_beginning, _bold, _only):
        if found := finder(text, letters):
            return _known(found, letters)
    return _by_words(text, choices) if not _named(text, letters) else None


SEVERAL = "?"  # an answer that picks several options


def _known(letter: str, letters: str) -> str | None:
    return letter.upper() if letter.upper() in letters and letter else None


def _after_phrase(text: str, letters: str) -> str | None:
    """After "answer is", "Antwort:", ...: the last one that is not denied."""
    both = letters + letters.lower()
    phrase = re.compile(
        rf"{_WORDS}s?(?![A-Za-z])(?P<verbs>{_VERBS})\s*{_NOT}{_LEAD}(?P<letter>[{both}]){_END}", re.IGNORECASE
    )
    found = None
    for match in phrase.finditer(text):
        letter, after = match["letter"], text[match.end() :]
        if re.search(r"\bnot\s*$|\bnot\b(?!.*but)", match["verbs"], re.IGNORECASE):
            continue
        bare = match["verbs"].strip() == "" and not re.search(r"[:=(*]", match.group())
        if bare and re.match(
            r"\s*(?:is|was|are|seems|looks|can|would|says|describes)\b"
            r"(?!\s+(?:the\s+)?(?:correct|right|best))",
            after,
        ):
            continue  # "Option A is about ...": named, not picked
        if letter.islower() and not re.match(r"[\s*]*(?:[).,\]:]|$|\n)", after):
            continue  # "the answer is a matter of taste"
        if (
            letter in "AI"
            and re.match(r"\s+[a-z]", after)
            and not re.match(r"\s+(?:because|since|as|is|and|or|for|due)\b", after)
        ):
            continue  # "The answer: A bird in the hand"
        found = SEVERAL if _several(after, letter) else letter
    return found


def _several(after: str, letter: str) -> bool:
    match = _SEVERAL.match(after)
    return match is not None and match[1] != letter.upper()


def _called_correct(text: str, upper: str) -> str | None:
    """ "C is correct", "(C) is the best answer": the only option that is called so."""
    pattern = (
        rf"(?<![\w'])\(?({upper})\)?[.:)]?(?:\s(?:(?!\b(?:is|are|was)\b|\b[A-Z]\b)[^.,\n]){{0,60}}?)?"
        r"\s(?:is|ist|est|es)\s+(?:the\s+|therefore\s+)?(?:correct|right|best|true|richtig|korrekt)\b"
    )
    called = {m[1] for m in re.finditer(pattern, text)}
    return next(iter(called)) if len(called) == 1 else (SEVERAL if called else None)


def _beginning(text: str, letters: str) -> str | None:
    """A letter that the answer starts with, unless another line starts with another one (a list)."""
    starts = re.findall(
        rf"^[\s*_`\"'(\[]*([{letters}])"
        r"(?:[)\]*_`\"']*[).:,\]]|[)\]*_`\"']+(?=\s|$)|\s*$|\s+[-–—]|\s+because)",
        text,
        re.M,
    )
    alone = re.fullmatch(rf"[\s*_`\"'(\[$]*([{letters}{letters.lower()}])[\s*_`\"')\].:$]*", text)
    if alone:
        return alone[1]
    first = re.match(rf"[\s*_`\"'(\[]*([{letters}]){_END}", text)
    if first and starts and starts[0] == first[1]:
        inline = set(re.findall(rf"(?<![\w'])([{letters}])[:.)]\s", text))
        if len(set(starts)) > 1 or (first[1] == "A" and len(inline) > 2):
            return None  # all options are gone through
        return SEVERAL if _several(text[first.end() :], first[1]) else first[1]
    return None


def _bold(text: str, letters: str) -> str | None:
    """The letter in bold, if one alone is."""
    bold = re.findall(rf"\*\*\s*\(?([{letters}])(?:[).:]+[^*\n]*|\)?)\*\*", text)
    if len(set(bold)) == 1:
        return str(bold[0])
    last = text.strip().splitlines()[-1:] or [""]
    bold = re.findall(rf"\*\*\s*\(?([{letters}])(?:[).:]+[^*\n]*|\)?)\*\*", last[0])
    return str(bold[0]) if len(set(bold)) == 1 else None


def _named(text: str, letters: str) -> set[str]:
    """The letters that stand by themselves; "A" and "I" only in brackets, after "option" or before a full
    stop, since they are words."""
    words = "".join(c for c in letters if c in "AI")
    rest = "".join(c for c in letters if c not in "AI")
    found = set(re.findall(rf"\(([{letters}])\)|\b(?:option|choice)\s+([{letters}])\b", text, re.IGNORECASE))
    named = {a.upper() or b.upper() for a, b in found}
    named |= set(re.findall(rf"(?<![\w'$\\])([{rest}])(?![\w'°^+=])", text)) if rest else set()
    if words:
        ends = rf"(?=[).:,](?:\s|$)|\s*$|\s+(?:and|or)\s+\(?[{letters}]\b)"
        named |= set(re.findall(rf"(?<![\w'])([{words}]){ends}", text))
    return named


def _only(text: str, letters: str) -> str | None:
    """The one letter that is named and not denied, where it is said as a choice ("I pick C", "so (C)"), not
    as a part of something ("vitamin C")."""
    denied = set(
        re.findall(rf"(?:\bnot|n't|\bnot be|n't be|\bcannot be)\s+(?:option\s+)?\(?([{letters}])\b", text)
    )
    named = _named(text, letters) - denied
    if len(named) != 1:
        return None
    letter = next(iter(named))
    return letter if re.search(rf"{_CHOSEN}{_LEAD}{letter}{_END}", text, re.IGNORECASE) else None


def _by_words(text: str, choices: Sequence[str]) -> str | None:
    """The option whose own words the last line gives, if it is one alone (the longest of nested ones)."""
    lines = [_words(line) for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    options = [_words(choice) for choice in choices]
    for at, option in enumerate(options):
        if option and option == lines[-1] and options.count(option) == 1:
            return string.ascii_uppercase[at]
    inside = [at for at, option in enumerate(options) if option.strip() and option in lines[-1]]
    inside = [a for a in inside if not any(a != b and options[a] in options[b] for b in inside)]
    return string.ascii_uppercase[inside[0]] if len(inside) == 1 else None


def _words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} " if words else ""
