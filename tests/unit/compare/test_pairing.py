"""May blocks of two runs be paired, and what does that leave open?"""

from typing import Any

import pytest

from loadgen.compare.pairing import pairing_of
from loadgen.compare.result import BY_PROMPT, UNPAIRED
from loadgen.store import Manifest

SECOND, HOUR = 10**9, 3600 * 10**9
MADE = {"seed": 1, "prompt_tokens": 50, "turn_requests": 64, "salt": "on", "prompt_file": None}
FILE = {**MADE, "prompt_file": "p.jsonl"}


def manifest(settings: dict[str, Any] = MADE, start_ns: int = SECOND, **facts: Any) -> Manifest:
    return Manifest(settings=settings, start_ns=start_ns, extra={"prompts": facts} if facts else {})


@pytest.mark.parametrize(
    ("a", "b", "kind", "said"),
    [
        (manifest(), manifest(), BY_PROMPT, None),
        (manifest(counted_by="v"), manifest(counted_by="v"), BY_PROMPT, None),
        (manifest(counted_by="v"), manifest(counted_by="l"), BY_PROMPT, "different tokenizers (v and l)"),
        (manifest(counted_by="v"), manifest(counted_by=None), BY_PROMPT, "(v and an estimate)"),
        (manifest(), manifest({**MADE, "seed": 2}), UNPAIRED, "different prompts (seed 1 and 2)"),
        (
            manifest(),
            manifest({**MADE, "prompt_tokens": 2000, "turn_requests": 6}),
            UNPAIRED,
            "(prompt length 50 and 2000, prompts a turn 64 and 6)",
        ),
        (manifest(), manifest(FILE), UNPAIRED, "(prompt file none and p.jsonl)"),
        (manifest(FILE), manifest({**FILE, "seed": 5, "prompt_tokens": 9}), BY_PROMPT, "whether its text"),
        (manifest(FILE), manifest({**FILE, "salt": "off"}), UNPAIRED, "(salting on and off)"),
        (
            manifest(FILE, prompts_in_file=10),
            manifest(FILE, prompts_in_file=12),
            UNPAIRED,
            "(10 and 12 prompts in the file)",
        ),
        (manifest(FILE, file_sha256="aa"), manifest(FILE, file_sha256="aa"), BY_PROMPT, None),
        (
            manifest(FILE, file_sha256="aa"),
            manifest({**FILE, "prompt_file": "/moved/p.jsonl"}, file_sha256="aa"),
            BY_PROMPT,
            None,
        ),
        (
            manifest(FILE, file_sha256="aa", prompts_in_file=10),
            manifest(FILE, file_sha256="bb", prompts_in_file=10),
            UNPAIRED,
            "(the contents of the prompt file)",
        ),
        (
            manifest(FILE, file_sha256="aa"),
            manifest(FILE),
            BY_PROMPT,
            "whether its text changed is not known",
        ),
        (manifest(), None, UNPAIRED, "a manifest is missing"),
    ],
)
def test_prompts_decide(a: Manifest | None, b: Manifest | None, kind: str, said: str | None) -> None:
    for x, y in ((a, b), (b, a)):
        found = pairing_of(x, y)
        assert found.kind == kind
        assert found.cannot_exclude[0].startswith("the runs were made apart")
        assert len(found.cannot_exclude) == (1 if said is None else 2)
    if said:
        assert said in pairing_of(a, b).cannot_exclude[1]


@pytest.mark.parametrize(
    ("later_ns", "said"),
    [
        (90 * SECOND, "apart, 90 seconds between their starts:"),
        (600 * SECOND, "apart, 10 minutes between their starts:"),
        (-3 * HOUR, "apart, 3 hours between their starts:"),
        (72 * HOUR, "apart, 3 days between their starts:"),
        (-SECOND * 10**9, "apart: "),  # no start is known
    ],
)
def test_how_far_apart(later_ns: int, said: str) -> None:
    start_ns = 10**9 * SECOND
    assert (
        said
        in pairing_of(manifest(start_ns=start_ns), manifest(start_ns=start_ns + later_ns)).cannot_exclude[0]
    )
