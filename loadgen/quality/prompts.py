"""What an engine is asked for an item, as chat messages, and how long its answer may be.

Both engines generate and the answer is read out of the text: log-likelihoods over HTTP exist in one of them
only. Each instruction names the form that is read most surely; an answer in another form counts all the same.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

from .items import LONGFORM, MMLU, Item

Message = dict[str, str]

MAX_TOKENS = {"choices": 512, "number": 1024, "text": 512}
LONGEST = 16_384  # tokens of a long-form answer
TOKENS_PER_WORD = 2.0  # of English prose with headings and room to end; an answer that is cut counts as cut

_NUMBER = (
    "Solve the problem step by step. Then write the final answer alone on the last line, as a number without "
    "its unit, in the form:\n#### <number>"
)
_LETTER = (
    "Answer the multiple-choice question. Give your answer on the last line in the form:\nAnswer: <letter>"
)
_TEXT = "Answer the question. Give your answer on the last line in the form:\nAnswer: <answer>"


def messages(item: Item, examples: Sequence[Item] = ()) -> list[Message]:
    """The chat messages of an item; `examples` are answered ones (MMLU: the five of its subject) shown
    before it, so that each engine sees the same form."""
    if item.choices:
        shown = [f"{_asked(e)}\nAnswer: {letter(e)}" for e in examples]
        about = (
            f"\n\nThe subject is {item.subject.replace('_', ' ')}."
            if item.subject and item.task == MMLU
            else ""
        )
        content = "\n\n".join([_LETTER + about, *shown, _asked(item)])
    elif item.answer is None:
        content = item.question
    else:
        content = f"{_NUMBER if item.numeric else _TEXT}\n\n{item.question.strip()}"
    return [{"role": "user", "content": content}]


def max_tokens(item: Item) -> int:
    """The most tokens an answer may have; of a long-form item twice its wanted words and a fifth more.

    >>> max_tokens(Item("longform", "1", "Write.", words=1000)), max_tokens(Item("gsm8k", "1", "2 + 2?", "4"))
    (2400, 1024)
    """
    if item.task == LONGFORM or (item.answer is None and not item.choices):
        return min(LONGEST, max(512, round((item.words or 1000) * TOKENS_PER_WORD * 1.2)))
    return MAX_TOKENS["choices" if item.choices else "number" if item.numeric else "text"]


def letter(item: Item) -> str:
    """The letter of the right choice. ValueError of an item without one.

    >>> letter(Item("mmlu", "1", "2 + 2?", 1, ("3", "4")))
    'B'
    """
    if not isinstance(item.answer, int):
        raise ValueError(f"{item.id} has no right choice")
    return string.ascii_uppercase[item.answer]


def _asked(item: Item) -> str:
    lines = [f"{string.ascii_uppercase[at]}. {choice}" for at, choice in enumerate(item.choices)]
    return "\n".join([item.question.strip(), *lines])
