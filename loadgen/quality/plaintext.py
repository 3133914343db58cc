"""What of a model's answer is the answer: without its thinking, without the questions that it goes on to
invent, and in plain characters."""

from __future__ import annotations

import re
import unicodedata

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_CLOSED = re.compile(r".*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_OPEN = re.compile(r"<(?:think|thinking|reasoning)>.*", re.DOTALL | re.IGNORECASE)
_NEXT_QUESTION = re.compile(r"\n\s*(?:Question|Q)\s*\d*\s*:", re.IGNORECASE)
_SIGNS = str.maketrans({"−": "-", "–": "-", "‐": "-", "‑": "-", "＄": "$", "⁄": "/", "’": "'"})


def without_thinking(text: str) -> str:
    """The text after a model's thinking. A thought that never ends leaves nothing; a closing tag whose
    opening one came with the chat template ends a thought as well.

    >>> without_thinking("<think>2 + 2 = 5?</think>It is 4."), without_thinking("so 4.</think> 4")
    ('It is 4.', ' 4')
    >>> without_thinking("<think>well, 3 or 4")
    ''
    """
    text = _THOUGHT.sub("", text)
    return _OPEN.sub("", _CLOSED.sub("", text))


def answer_text(text: str) -> str:
    """The answer alone, normalised to compatibility characters (NFKC: full-width letters and digits become
    plain) with one kind of minus and decimal digits 0-9 of every script.

    >>> answer_text("Ｂ ٤٢ −7")
    'B 42 -7'
    """
    text = without_thinking(text)
    cut = _NEXT_QUESTION.search(text.strip())
    text = text.strip()[: cut.start()] if cut else text.strip()
    for vulgar, plain in (("½", " 1/2"), ("¼", " 1/4"), ("¾", " 3/4")):  # else 2½ would become 21/2
        text = text.replace(vulgar, plain)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return text
