"""How much a text repeats itself. Tokens are words and single other characters, since engines differ in
theirs and none tells them; a Chinese or Japanese character counts as a word.

- tail loop: a phrase of 1-90 tokens that is said again and again, back to back, at the end: more than once
  again if it has 3 tokens or more, more than 50 times if it is shorter (A. Holtzman et al., "The Curious Case
  of Neural Text Degeneration", 2020).
- longest repeat: the longest span that stands at two places which do not overlap; 50 tokens are suspicious.
- rep-4: 1 - different / all runs of 4 tokens (S. Welleck et al., "Neural Text Generation with Unlikelihood
  Training", 2020); 0.20 is suspicious.

The last two are meant for prose of more than 500 tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

LONG = 500  # tokens, from which on all measures hold
PHRASE = 90
AGAIN, AGAIN_SHORT = 1, 50  # more often than so, after its first time
SPAN = 50
REP_4 = 0.20

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Repetition:
    """What is repeated in a text."""

    tokens: int
    tail_loop: bool
    tail_phrase: str  # "" without a loop; at most 200 characters
    tail_times: int  # how often the phrase stands there, its first time included; 0 without a loop
    longest_repeat_tokens: int
    rep_4: float

    @property
    def repetitive(self) -> bool:
        """Whether a reader would be right to complain; of a text up to 500 tokens only the tail is judged."""
        inside = self.longest_repeat_tokens >= SPAN or self.rep_4 >= REP_4
        return self.tail_loop or (self.tokens > LONG and inside)

    def to_row(self) -> dict[str, object]:
        """As a row of quality.jsonl holds it."""
        row: dict[str, object] = {
            "tokens": self.tokens,
            "tail_loop": self.tail_loop,
            "longest_repeat_tokens": self.longest_repeat_tokens,
            "rep_4": round(self.rep_4, 4),
            "repetitive": self.repetitive,
        }
        if self.tail_loop:
            row |= {"tail_phrase": self.tail_phrase, "tail_times": self.tail_times}
        return row


def measure(text: str) -> Repetition:
    """The repetition of a text.

    >>> m = measure("It was cold. " + "And then it rained. " * 5)
    >>> m.tail_loop, m.tail_phrase, m.tail_times
    (True, 'And then it rained .', 5)
    >>> measure("It was cold. Then it rained, and we went home.").tail_loop
    False
    """
    tokens = words(text)
    phrase, times = tail(tokens)
    return Repetition(
        len(tokens), times > 0, " ".join(phrase)[:200], times, longest_repeat(tokens), rep(tokens, 4)
    )


def words(text: str) -> list[str]:
    """The tokens of a text.

    >>> words("It's 3.5, no?"), len(words("你好 world"))  # doctest: +NORMALIZE_WHITESPACE
    (['It', "'", 's', '3', '.', '5', ',', 'no', '?'], 3)
    """
    return _TOKEN.findall(text)


def tail(tokens: Sequence[str]) -> tuple[list[str], int]:
    """The phrase that a text ends with again and again, and how often; ([], 0) if it does not. A text that
    was cut within the phrase ends with the same phrase begun elsewhere. Of a shortest phrase only: "no no no
    no no no" is one word six times, not two words three times."""
    n, short = len(tokens), 0  # short: how far back a run of 1 or 2 tokens reaches that is no loop yet
    for length in range(1, min(PHRASE, n // 2) + 1):
        matched = 0  # tokens from the end that equal the one a phrase earlier
        while matched < n - length and tokens[n - 1 - matched] == tokens[n - 1 - matched - length]:
            matched += 1
        again = matched // length
        if length >= 3 and (again + 1) * length <= short:
            continue
        if again > (AGAIN if length >= 3 else AGAIN_SHORT):
            start = n - (again + 1) * length
            return list(tokens[start : start + length]), again + 1
        if length < 3:
            short = max(short, matched + length)
    return [], 0


def longest_repeat(tokens: Sequence[str]) -> int:
    """The length of the longest span that stands at two places without overlap; 0 if no token comes twice."""
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(token, len(numbers)) for token in tokens]
    low, high = 0, len(ids) // 2
    while low < high:
        middle = (low + high + 1) // 2
        if _twice(ids, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _twice(ids: Sequence[int], length: int) -> bool:
    """By a rolling hash modulo a prime of 61 bits, compared in full where two agree."""
    base, prime = 1_000_003, (1 << 61) - 1
    leading = pow(base, length, prime)
    first: dict[int, int] = {}
    value = 0
    for end, token in enumerate(ids):
        value = (value * base + token + 1) % prime
        if end >= length:
            value = (value - (ids[end - length] + 1) * leading) % prime
        if end >= length - 1:
            start = end - length + 1
            seen = first.setdefault(value, start)
            if start - seen >= length and ids[seen : seen + length] == ids[start : start + length]:
                return True
    return False


def rep(tokens: Sequence[str], n: int) -> float:
    """rep-n: the share of runs of n tokens that are not the first of their kind; 0 of a text without any.

    >>> rep("a b c a b c".split(), 2)  # ab bc ca ab bc: 3 kinds of 5
    0.4
    """
    runs = list(zip(*(tokens[at:] for at in range(n)), strict=False))
    return 1 - len(set(runs)) / len(runs) if runs else 0.0
