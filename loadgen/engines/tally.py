"""UsageTally: what the events of one response say together about tokens. Pure."""

from __future__ import annotations

from typing import Any

from .chunk import Chunk, Usage
from .decode import count


class UsageTally:
    """Adds up the chunks of one response, for any number of choices.

    Servers report usage in four ways, and all may be mixed with several choices (n > 1):

    1. one summary event with `choices: []` for all choices (vLLM, OpenAI)
    2. one summary event with `choices: []` per choice (llama.cpp chat)
    3. usage in each choice's last event (llama.cpp completions)
    4. usage so far in every event of a choice (vLLM's continuous usage), with or without a summary after it

    Output tokens add up over choices; the prompt is one and the same for all of them, so it counts once.
    """

    def __init__(self) -> None:
        self.timings: dict[str, Any] | None = None
        """llama.cpp's timings, of the choice that ended last."""
        self.finish_reasons: dict[int, str] = {}
        """Choice index -> why it ended; a choice that has not ended is missing."""
        self.text_events = 0
        self._choices: set[int] = set()
        self._summaries: list[Usage] = []
        self._by_choice: dict[int, Usage] = {}
        self._timings_by_choice: dict[int | None, list[dict[str, Any]]] = {}

    def add(self, chunk: Chunk) -> None:
        if chunk.has_text:
            self.text_events += 1
        if chunk.choice is not None:
            self._choices.add(chunk.choice)
            if chunk.finish_reason:
                self.finish_reasons[chunk.choice] = chunk.finish_reason
        if chunk.usage is not None:
            if chunk.choice is None:
                self._summaries.append(chunk.usage)
            else:
                self._by_choice[chunk.choice] = chunk.usage
        if chunk.timings is not None:
            self.timings = chunk.timings
            if chunk.choice is None:
                self._timings_by_choice.setdefault(None, []).append(chunk.timings)
            else:
                self._timings_by_choice[chunk.choice] = [chunk.timings]

    @property
    def finished(self) -> bool:
        """Has every choice that was seen said why it ended?"""
        return bool(self._choices) and self._choices <= self.finish_reasons.keys()

    @property
    def finish_reason(self) -> str | None:
        """The first choice's reason; None if it has not ended."""
        return self.finish_reasons[min(self.finish_reasons)] if self.finish_reasons else None

    def usage(self) -> Usage:
        """Tokens of the response; what no event tells is None. Usage first, then timings."""
        return _fill(self._from_usage(), self._from_timings())

    @property
    def token_source(self) -> str:
        """What output_tokens counts by: usage, timings or events (then usage() has None for it)."""
        if self._from_usage().output_tokens is not None:
            return "usage"
        return "timings" if self._from_timings().output_tokens is not None else "events"

    def _from_usage(self) -> Usage:
        if not self._summaries:
            return _together(list(self._by_choice.values()))
        if len(self._summaries) <= max(1, len(self._choices)):
            summary = _together(self._summaries)
        else:  # more summaries than choices: each one repeats and replaces those before
            summary = self._summaries[-1]
        return _fill(summary, _together(list(self._by_choice.values())))

    def _from_timings(self) -> Usage:
        # At a choice's end llama.cpp repeats its timings in the summary, which then stands for all of them.
        found = self._timings_by_choice
        rows = found.get(None) or [rows[0] for rows in found.values()]
        usages = []
        for row in rows:
            cached, fresh = count(row.get("cache_n")), count(row.get("prompt_n"))
            prompt = None if fresh is None or cached is None else cached + fresh
            usages.append(Usage(prompt, count(row.get("predicted_n")), cached))
        return _together(usages)


def _together(usages: list[Usage]) -> Usage:
    outputs = [u.output_tokens for u in usages if u.output_tokens is not None]
    return Usage(
        prompt_tokens=max((u.prompt_tokens for u in usages if u.prompt_tokens is not None), default=None),
        output_tokens=sum(outputs) if outputs else None,
        cached_tokens=max((u.cached_tokens for u in usages if u.cached_tokens is not None), default=None),
    )


def _fill(first: Usage, second: Usage) -> Usage:
    """`first`, its gaps filled from `second`."""
    return Usage(
        prompt_tokens=second.prompt_tokens if first.prompt_tokens is None else first.prompt_tokens,
        output_tokens=second.output_tokens if first.output_tokens is None else first.output_tokens,
        cached_tokens=second.cached_tokens if first.cached_tokens is None else first.cached_tokens,
    )
