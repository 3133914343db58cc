"""UsageTally over all ways in which servers report usage."""

from __future__ import annotations

from typing import Any

import pytest

from loadgen.engines.chunk import Chunk, Usage
from loadgen.engines.tally import UsageTally


def text(choice: int = 0, finish: str | None = None, usage: Usage | None = None, **more: Any) -> Chunk:
    return Chunk(choice=choice, answer="x", finish_reason=finish, usage=usage, **more)


def end(choice: int = 0, usage: Usage | None = None, **more: Any) -> Chunk:
    return Chunk(choice=choice, finish_reason="length", usage=usage, **more)


def summary(output: int, prompt: int = 10, cached: int | None = None, **more: Any) -> Chunk:
    return Chunk(usage=Usage(prompt, output, cached), **more)


TIMINGS = {"cache_n": 4, "prompt_n": 6, "predicted_n": 2}
CASES: list[tuple[str, list[Chunk], tuple[int | None, int | None, int | None], str]] = [
    # name, chunks, (prompt, output, cached), source
    ("one summary", [text(), text(finish="length"), summary(2)], (10, 2, None), "usage"),
    ("a sum over two choices", [text(0), text(1), end(0), end(1), summary(16)], (10, 16, None), "usage"),
    ("a summary per choice",
     [text(0), text(1), end(0), summary(8, cached=9), text(1), end(1), summary(7, cached=9)],
     (10, 15, 9), "usage"),
    ("usage in the last event", [text(), end(usage=Usage(10, 1, 0))], (10, 1, 0), "usage"),
    ("usage in each choice's last event",
     [text(0), text(1), end(1, Usage(10, 3, 5)), end(0, Usage(10, 4, 5))], (10, 7, 5), "usage"),
    ("continuous usage, then a summary",
     [text(usage=Usage(10, 1)), text(usage=Usage(10, 2)), end(usage=Usage(10, 2)), summary(2)],
     (10, 2, None), "usage"),
    ("continuous usage of two choices without a summary",
     [text(0, usage=Usage(10, 1)), text(1, usage=Usage(10, 1)), text(0, usage=Usage(10, 2)),
      text(1, usage=Usage(10, 2)), text(1, usage=Usage(10, 3))],
     (10, 5, None), "usage"),
    ("summaries that repeat: the last counts", [text(), summary(1), summary(2), summary(3)],
     (10, 3, None), "usage"),
    ("cached tokens only in continuous usage",
     [text(usage=Usage(10, 1, 6)), summary(1)], (10, 1, 6), "usage"),
    ("timings alone", [text(), text(), end(timings=TIMINGS)], (10, 2, 4), "timings"),
    ("timings of two choices", [text(0), text(1), end(0, timings=TIMINGS), end(1, timings=TIMINGS)],
     (10, 4, 4), "timings"),
    ("cached tokens from timings", [text(), summary(1, timings=TIMINGS)], (10, 1, 4), "usage"),
    ("usage without output", [text(), Chunk(usage=Usage(10)), end(timings=TIMINGS)], (10, 2, 4), "timings"),
    ("nothing but text", [text(), text(finish="stop")], (None, None, None), "events"),
    ("nothing", [], (None, None, None), "events"),
    ("no tokens at all", [end(usage=Usage(0, 0, 0))], (0, 0, 0), "usage"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "chunks", "counts", "source"), CASES, ids=[c[0] for c in CASES])
def test_usage(
    name: str, chunks: list[Chunk], counts: tuple[int | None, int | None, int | None], source: str
) -> None:
    tally = UsageTally()
    for chunk in chunks:
        tally.add(chunk)
    usage = tally.usage()
    assert (usage.prompt_tokens, usage.output_tokens, usage.cached_tokens) == counts
    assert tally.token_source == source


def test_finished_means_every_choice() -> None:
    tally = UsageTally()
    finished = [tally.finished]
    for chunk in (text(0), text(1), text(0, finish="length"), end(1)):
        tally.add(chunk)
        finished.append(tally.finished)
    assert finished == [False, False, False, False, True]
    assert tally.finish_reason == "length"
    assert tally.finish_reasons == {0: "length", 1: "length"}


def test_timings_are_the_last_ones() -> None:
    tally = UsageTally()
    assert tally.timings is None
    tally.add(text(timings={"predicted_n": 1}))
    tally.add(summary(2, timings={"predicted_n": 2}))
    assert tally.timings == {"predicted_n": 2}
