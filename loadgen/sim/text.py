"""What the simulated models say: plausible words, decided by the prompt and the seed alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from loadgen.sim.tokens import EOS, PHRASE_TOKENS, detokenize, is_half, tokenize

WORDS = """
    the of and a to in is that it was for on are as with they at be this from have or by one had not but
    what all were when we there can an your which their said if do will each about how up out them then
    she many some so these would other into has more her two like him see time could no make than first
    been its who now people my made over did down only way find use may water long little very after
    words called just where most know get through back much before go good new write our used me man too
    any day same right look think also around another came come work three word must because does part
    even place well such here take why things help put years different away again off went old number
    river garden winter letter morning island silver engine window captain machine shadow forest quiet
    lantern harbour market bridge travel story thunder whisper careful curious golden distant ordinary
""".split()  # noqa: SIM905
ODDITIES = ("🦊", "🙂", "🚀", "日本語", "河流", "café", "naïve", "Ελλάδα", "“so it was”", "—", "🧑‍🚀")


@lru_cache(maxsize=4096)
def _ids(text: str) -> tuple[int, ...]:
    return tuple(tokenize(text))


def seed_of(prompt: Sequence[int], choice: int = 0, seed: int = 0) -> int:
    """A number that is the same for the same prompt in every process."""
    h = blake2b(",".join(map(str, prompt)).encode(), digest_size=8)
    return int.from_bytes(h.digest(), "big") ^ (choice * 0x9E3779B97F4A7C15) ^ seed


def generate(
    prompt: Sequence[int],
    limit: int,
    *,
    choice: int = 0,
    seed: int = 0,
    ignore_eos: bool = False,
    min_tokens: int = 0,
    odd_share: float = 0.02,
    tricky: bool = False,
) -> list[int]:
    """At most `limit` output tokens for a prompt.

    Unless `ignore_eos`, the answer ends with an EOS token where the seed says so (after 40 tokens at the
    median), not before `min_tokens`; an answer that `limit` cuts has none. `odd_share` of the words are
    emoji or other letters than ASCII; a prompt that has half-character tokens itself is answered with
    them, beginning with one. `tricky` puts text between the words that looks like the protocol. Otherwise
    the first token is a word, and no answer ends in the middle of a character.
    """
    if limit <= 0:
        return []
    rng = random.Random(seed_of(prompt, choice, seed))
    eos_at = max(min_tokens, 4 + int(rng.expovariate(1 / 52)))
    stop_at = limit if ignore_eos or eos_at >= limit else eos_at
    echo = sorted({detokenize(prompt[i : i + 2]) for i, t in enumerate(prompt[:-1]) if is_half(t)})
    out: list[int] = []
    left = phrase = 0
    while len(out) < stop_at:
        if left == 0:
            left = rng.randint(5, 14)
            word = rng.choice(WORDS)
            text = word.capitalize() if not out else " " + word.capitalize()
        else:
            left -= 1
            text = " " + rng.choice(WORDS) + ("." if left == 0 else "," if rng.random() < 0.06 else "")
        if echo and (not out or rng.random() < 0.5):
            text = rng.choice(echo)
        elif out and rng.random() < odd_share:
            text = " " + rng.choice(ODDITIES)
        out.extend(_ids(text))
        if tricky and rng.random() < 0.4:
            out.append(PHRASE_TOKENS[phrase % len(PHRASE_TOKENS)])
            phrase += 1
    del out[stop_at:]
    if is_half(out[-1]):
        out[-1] = _ids(".")[0]
    if stop_at < limit:
        out.append(EOS)
    return out
