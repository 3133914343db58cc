"""A run's workload in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from loadgen.report.plain import clean


def lengths(s: Mapping[str, Any]) -> str:
    """What prompts and answers of a run are like, by its manifest's settings, which may hold anything."""
    if s.get("mix"):
        return f"mix {clean(s['mix'], 80)}"
    output = f"{clean(s.get('output_tokens'), 20)} output tokens"
    if isinstance(several := s.get("prompt_lengths"), list) and several:
        return f"each of {', '.join(clean(n, 20) for n in several)} prompt and {output}"
    if isinstance(s.get("exchanges"), int) and s["exchanges"] > 1:
        system, question = (clean(s.get(name), 20) for name in ("system_tokens", "prompt_tokens"))
        return (
            f"conversations of {s['exchanges']} exchanges, {system} system, {question} question and {output}"
        )
    if not s.get("prompt_file"):
        return f"{clean(s.get('prompt_tokens'), 20)} prompt and {output}"
    file = clean(PurePath(str(s["prompt_file"])).name, 40)
    return f"prompts of {file}{' without salt' if s.get('salt') == 'off' else ''}, {output}"
