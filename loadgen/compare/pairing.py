"""How two runs that were made apart may be paired, and what their comparison cannot exclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadgen.compare.differences import prompt_facts, same_prompt_file
from loadgen.compare.result import BY_PROMPT, UNPAIRED
from loadgen.store import Manifest

# Settings that decide which prompts a block has. The salts differ in any case.
_OF_PROMPTS = {
    "prompt_file": "prompt file",
    "seed": "seed",
    "prompt_tokens": "prompt length",
    "prompt_lengths": "prompt lengths",
    "mix": "mix",
    "exchanges": "exchanges",
    "system_tokens": "system prompt",
    "turn_requests": "prompts a turn",
    "salt": "salting",
}


@dataclass(frozen=True, slots=True)
class Pairing:
    """`kind` is BY_PROMPT or UNPAIRED; `cannot_exclude` are sentences."""

    kind: str
    cannot_exclude: tuple[str, ...]


def pairing_of(a: Manifest | None, b: Manifest | None) -> Pairing:
    """Block k of one run is paired with block k of the other if both had the same prompts but for the salts.

    Prompts of a file are the same if its SHA-256 is, wherever it lay; of manifests that don't have it, they
    are taken for the same if name and number are.
    """
    said = [
        f"the runs were made apart{_hours(a, b)}: whatever else changed between them (other work on the "
        "machine, its temperature, a restarted server) is in the ratios, and their intervals don't know of it"
    ]
    if a is None or b is None:
        said.append("a manifest is missing, so nobody knows whether the prompts were the same: not paired")
        return Pairing(UNPAIRED, tuple(said))
    same_file = same_prompt_file(a, b)
    unlike = _unlike(a, b, same_file)
    if unlike:
        said.append(
            f"the runs had different prompts ({', '.join(unlike)}), so blocks are not paired, and what the "
            "prompts do to the figures is in the ratios too"
        )
        return Pairing(UNPAIRED, tuple(said))
    counted = [prompt_facts(m).get("counted_by") for m in (a, b)]
    if counted[0] != counted[1] and a.settings.get("prompt_file") is None:
        names = " and ".join(str(c or "an estimate") for c in counted)
        said.append(
            f"prompts have the same words, but their lengths were set by different tokenizers ({names}): "
            "they may end a few words apart"
        )
    if a.settings.get("prompt_file") is not None and same_file is None:
        said.append("prompts come from a file of the same name; whether its text changed is not known")
    return Pairing(BY_PROMPT, tuple(said))


def _unlike(a: Manifest, b: Manifest, same_file: bool | None) -> list[str]:
    """What makes the prompts different, as words with both values."""
    if same_file is False:
        return ["the contents of the prompt file"]
    one, other = a.settings, b.settings
    names = list(_OF_PROMPTS)
    named = one.get("prompt_file") is not None and one.get("prompt_file") == other.get("prompt_file")
    if same_file or named:  # a file's prompts have neither a seed nor a length that is asked for
        names = ["turn_requests", "salt"]
    out = [
        f"{_OF_PROMPTS[name]} {_word(one.get(name))} and {_word(other.get(name))}"
        for name in names
        if _setting(one, name) != _setting(other, name)
    ]
    numbers = [prompt_facts(m).get("prompts_in_file") for m in (a, b)]
    if not out and numbers[0] != numbers[1]:
        out.append(f"{_word(numbers[0])} and {_word(numbers[1])} prompts in the file")
    return out


def _setting(settings: Mapping[str, Any], name: str) -> Any:
    """What is empty is as good as absent: manifests of older versions lack some of them."""
    value = settings.get(name)
    return None if not value or (name == "exchanges" and value == 1) else value


def _word(value: Any) -> str:
    return "none" if value is None else str(value)


def _hours(a: Manifest | None, b: Manifest | None) -> str:
    """ ", 3 hours between their starts", if both are known."""
    if a is None or b is None or not a.start_ns or not b.start_ns:
        return ""
    seconds = abs(a.start_ns - b.start_ns) / 1e9
    for length, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f", {seconds / length:.0f} {unit} between their starts"
    return f", {seconds:.0f} seconds between their starts"
