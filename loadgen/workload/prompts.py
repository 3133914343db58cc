"""Prompts of an exact token count, found with the server's own tokenizer in few calls.

The count of a text is only known to the server, a call away. So a prompt is first cut to what it should be
by an estimate that learns from every count made before, a little short on purpose; then the missing tokens
are added as short words that are one token each in the usual vocabularies. Two calls are the rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from loadgen.workload.prompt import Prompt
from loadgen.workload.prose import words
from loadgen.workload.salt import salts

Count = Callable[[Prompt], "int | None"]
"""The length of a prompt in tokens as the server's usage will say, template included; None: cannot tell."""

_OPENING = ("Continue", "this", "text:")
_FILLER = (
    "and",
    "so",
    "the",
    "day",
    "went",
    "on",
    "and",
    "the",
    "night",
    "came",
    "and",
    "all",
    "of",
    "it",
    "was",
)
_MAX_FILLER = 16
_MAX_COUNTS = 12
_STUBBORN = 5  # counts after which the text itself is varied, for vocabularies that split the filler
_CHARS_PER_TOKEN = 4.4  # of the shipped text, in the vocabularies tried; only a first guess
_TEMPLATE_GUESS = 12  # tokens, salt included, where no tokenizer can tell
_SALT_CHARS = 9


class PromptError(Exception):
    """A prompt that cannot be made; the text is one clear sentence."""


class PromptMaker:
    """Makes the prompts of one run.

    `target` is the length in tokens, template included, by `count`. `seed` determines the words, `run_salt`
    the salts: the same seed gives the same prompts but for their salts. After the first prompt, `least` is
    the shortest possible prompt (template and salt, nothing else), None where `count` cannot tell.
    `counts` is the number of calls so far.
    """

    def __init__(
        self, count: Count, target: int, *, seed: int | str, run_salt: str, lengthen: bool = False
    ) -> None:
        self.target = target
        self.lengthen = lengthen
        self.lengthened = 0
        self.least: int | None = None
        self.exact: bool | None = None
        self.counts = 0
        self._count = count
        self._seed = seed
        self._salts = salts(run_salt)
        self._chars = 0.0
        self._tokens = 0.0
        self._template = _TEMPLATE_GUESS

    def make(self, pair: int, target: int | None = None) -> Prompt:
        """The prompt number `pair`, of another length than the maker's if one is given.

        Raises PromptError when `target` is below the template's own length, or makes the shortest prompt
        that can be had and counts it, with `lengthen`.
        """
        target = self.target if target is None else target
        source = itertools.chain(_OPENING, words(f"{self._seed}/{pair}"))
        salt = next(self._salts)
        if self.exact is None:
            self.least = self._ask(Prompt(pair, salt))
            self.exact = self.least is not None
        if self.least is None:
            return Prompt(pair, _take(salt, source, self._room(target - self._template)))
        if target < self.least:
            if not self.lengthen:
                raise PromptError(
                    f"prompts of {target} tokens are not possible here: the chat template and the salt "
                    f"alone take {self.least}, so ask for {self.least} or more (--prompt-tokens, --mix)"
                )
            target = self.least
            self.lengthened += 1
        return self._fit(Prompt(pair, salt), source, target)

    def calibrate(self, count: Count) -> None:
        """Improve the estimate for prompts that cannot be counted, by counting two texts that are none of
        them: for a server that counts what it is made to compute, and so has in its cache afterwards."""
        texts = [_take(next(self._salts), words(f"calibration {n}"), 4.4 * n) for n in (20, 220)]
        short, long = (count(Prompt(-1, text)) for text in texts)
        if short is not None and long is not None and long > short:
            self._learn(len(texts[1]) - len(texts[0]), long - short)
            self._template = max(0, round(short - (len(texts[0]) - _SALT_CHARS) * self._tokens / self._chars))

    def make_rough(self, label: str, target: int | None = None) -> Prompt:
        """A prompt of about the target's length, without a call: for warming up, and for conversations."""
        source = itertools.chain(_OPENING, words(f"{self._seed}/{label}"))
        least = self._template if self.least is None else self.least
        room = self._room((self.target if target is None else target) - least)
        return Prompt(-1, _take(next(self._salts), source, room))

    def make_text(self, label: str, tokens: int) -> str:
        """Text of about so many tokens in itself, template not counted, without a call."""
        source = itertools.chain(_OPENING, words(f"{self._seed}/{label}"))
        return _take(next(self._salts), source, self._room(tokens - _SALT_CHARS))

    def _ask(self, prompt: Prompt) -> int | None:
        self.counts += 1
        return self._count(prompt)

    def _fit(self, prompt: Prompt, source: Iterator[str], target: int) -> Prompt:
        """`prompt`, of the salt alone, lengthened to the target; the nearest found if none fits exactly."""
        assert self.least is not None
        salt = prompt.text
        body, filler = _take(salt, source, self._room(target - self.least)), 0
        best, best_off = prompt, -1
        for attempt in range(_MAX_COUNTS):
            text = " ".join((body, *itertools.islice(itertools.cycle(_FILLER), filler)))
            tokens = self._ask(replace(prompt, text=text))
            if tokens is None:
                raise PromptError("the server counted tokens at first and then did not answer any more")
            missing = target - tokens
            if best_off < 0 or abs(missing) < best_off:
                best, best_off = replace(prompt, text=text, tokens=tokens), abs(missing)
            if missing == 0:
                break
            if filler == 0:
                self._learn(len(body) - len(salt), tokens - self.least)
            if attempt >= _STUBBORN and 0 < missing <= _MAX_FILLER:
                body, filler = text + "." * missing, 0  # a vocabulary of characters or bytes
            elif attempt >= _STUBBORN and filler:
                body, filler = _cut(body, len(salt), 2), 0
            elif 0 < missing <= _MAX_FILLER - filler:
                filler += missing
            elif missing > 0:
                body, filler = _take(body, source, self._room(missing)), 0
            elif filler:
                filler = max(0, filler + missing)
            elif body != salt:
                body = _cut(body, len(salt), -missing)
            else:  # this salt is longer than the one that was counted for `least`
                salt = body = next(self._salts)
        return best

    def _room(self, tokens: int) -> float:
        """Characters for slightly fewer than `tokens` tokens: adding is cheaper than cutting."""
        short = max(0.0, tokens - 1 - tokens / 200)
        return short * (self._chars / self._tokens if self._tokens else _CHARS_PER_TOKEN)

    def _learn(self, chars: int, tokens: int) -> None:
        if tokens > 0:
            self._chars += chars
            self._tokens += tokens


def _take(text: str, source: Iterator[str], chars: float) -> str:
    """`text` with words added while they fit into `chars` more characters."""
    out, used = [text], 0
    for word in source:
        used += len(word) + 1
        if used > chars:
            break
        out.append(word)
    return " ".join(out)


def _cut(text: str, keep: int, tokens: int) -> str:
    """`text` without its last words, at least `tokens` tokens shorter (a word is at least one token)."""
    for _ in range(tokens):
        space = text.rfind(" ", keep)
        if space < 0:
            return text[:keep]
        text = text[:space]
    return text
