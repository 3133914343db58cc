"""Whether an answer is right: the fields of a row of quality.jsonl that follow from the item and the text."""

from __future__ import annotations

import re

from .items import Item
from .letters import picked_letter
from .numbers import flexible_number, reference_number, same_number, strict_number
from .plaintext import answer_text, without_thinking
from .prompts import letter
from .repetition import measure

_ANSWER = re.compile(r"answer\W{0,4}\s?(?:is|:)[\s*_:\"'`]*([^\n]+)", re.IGNORECASE)


def score(item: Item, text: str, finish_reason: str | None) -> dict[str, object]:
    """The fields: `truncated` (the answer ended at max_tokens: it is wrong, whatever it says so far),
    `correct` (absent of an item where nothing is right or wrong), `extracted` (what was read out of it;
    absent if nothing was), of a number `strict` and `flexible` (`correct` is the flexible one), and of
    long-form text `repetition`.

    >>> score(Item("gsm8k", "1", "6 * 3?", "#### 18"), "It is 18.", "stop")
    {'truncated': False, 'extracted': '18', 'strict': False, 'flexible': True, 'correct': True}
    """
    truncated = finish_reason == "length"
    row: dict[str, object] = {"truncated": truncated}
    if item.choices:
        found = picked_letter(text, item.choices)
        return row | _read(found) | {"correct": not truncated and found == letter(item)}
    if not isinstance(item.answer, str):
        return row | {"repetition": measure(without_thinking(text)).to_row()}
    if item.numeric:
        wanted = reference_number(item.answer)
        found = flexible_number(text)
        strict = not truncated and same_number(strict_number(text), wanted)
        flexible = not truncated and same_number(found, wanted)
        return row | _read(found) | {"strict": strict, "flexible": flexible, "correct": flexible}
    given = _given(text)
    return row | _read(given) | {"correct": not truncated and _plain(given) == _plain(item.answer) != ""}


def _read(found: str | None) -> dict[str, object]:
    return {} if not found else {"extracted": found}


def _given(text: str) -> str:
    """After the last "Answer:", else the whole of an answer of one line, else its last line."""
    text = answer_text(text)
    if marked := _ANSWER.findall(text):
        return str(marked[-1]).strip(" *_`\"'.")
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip(" *_`\"'.")[:200] if lines else ""


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", answer_text(text).casefold()))
