"""What of a model's answer is the answer: without its thinking, without the questions that it goes on to
invent, and in plain characters."""

from __future__ import annotations

import re
import unicodedata

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
BEGINNING, END = 4_000, 8_000  # characters of a very long answer that are read; what lies between gives none
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
    tags = list(_TAG.finditer(text))
    kept: list[str] = []
    at, thinking = 0, False
    for tag in tags:
        if tag[1]:
            kept = kept if thinking else []  # without an opening tag all before it was thought
        elif not thinking:
            kept.append(text[at : tag.start()])
        at, thinking = tag.end(), not tag[1]
    return "".join(kept) + ("" if thinking else text[at:])


def answer_text(text: str) -> str:
    """The answer alone, normalised to compatibility characters (NFKC: full-width letters and digits become
    plain) with one kind of minus and decimal digits 0-9 of every script.

    >>> answer_text("Ｂ ٤٢ −7")
    'B 42 -7'
    """
    text = without_thinking(text)
    text = re.sub(r"[ \t]{3,}", "  ", re.sub(r"\n{3,}", "\n\n", text.strip()))
    if len(text) > BEGINNING + END:
        text = text[:BEGINNING] + "\n" + text[-END:]
    if cut := _NEXT_QUESTION.search(text):
        text = text[: cut.start()]
    for vulgar, plain in (("½", " 1/2"), ("¼", " 1/4"), ("¾", " 3/4")):  # else 2½ would become 21/2
        text = text.replace(vulgar, plain)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    return text
