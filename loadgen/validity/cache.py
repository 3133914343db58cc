"""cache: were prompts found in a prefix cache that should not have been there?"""

from __future__ import annotations

from loadgen.validity.evidence import Evidence
from loadgen.validity.finding import Finding, Level

# The sentences that a run notes of its engines' caches (users/lane.py).
WARM = "TTFT is too good"
HITS = "came from the prefix cache by its own counters"
UNVERIFIED = "prefix cache unverified"
COLD = "so its later turns were not warm"
WANTED = "as is wanted here"


def check(run: Evidence) -> list[Finding]:
    """Suspect where more tokens were cached than template and salt explain; a note where nobody can tell.

    A file's prompts sent without salt are there to be found in the cache: that is a note, too. Conversations
    want a warm cache: how warm it was is a note, and an engine that found nothing in it is suspect.
    """
    out = []
    for note in run.notes:
        if WARM in note or HITS in note:
            advice = "restart the engine or switch its prefix cache off, and leave the salt on"
            out.append(Finding("cache", Level.SUSPECT, note, advice))
        elif COLD in note:
            advice = "switch the engine's prefix cache on, or take these figures for those of a cold cache"
            out.append(Finding("cache", Level.SUSPECT, note, advice))
        elif UNVERIFIED in note or WANTED in note:
            out.append(Finding("cache", Level.VALID, note))
    if run.settings.get("salt") == "off":
        out.append(Finding("cache", Level.VALID, "prompts were sent without salt, so prefix caches may help"))
    return out
