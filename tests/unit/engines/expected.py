"""The right result of every capture, stated by hand from the recorded bytes (not by the code under test).

`EXPECTED[engine][case]` has one Expected per exchange of the capture. The facts were read off the captures:
text-bearing events by looking at each stream, tokens from the last usage or timings object in the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Expected:
    """What a record of this exchange must say.

    `what`: `stream` (an event stream), `json` or `text` (a whole body; a streaming client must call it
    not_a_stream), `http_error`, `empty` (200 without a body), `dead` (the server had closed the connection:
    no response at all, a client connects again).
    `outcome` is ok, failed or cancelled (the client went away; replayed to an end it is `truncated`).
    `events` counts text-bearing events; `error` is the record's kind, `error_text` a part of its text.
    """

    what: str
    status: int = 200
    outcome: str = "ok"
    error: str | None = None
    error_text: str = ""
    events: int = 0
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    token_source: str | None = None
    choices: int = 1
    done: bool = True
    first_text: str | None = None


def stream(
    events: int,
    output: int,
    prompt: int | None,
    cached: int | None = None,
    *,
    finish: str = "length",
    source: str = "usage",
    choices: int = 1,
    done: bool = True,
    first: str | None = None,
) -> Expected:
    """A stream that ended well."""
    return Expected(
        "stream",
        events=events,
        output_tokens=output,
        prompt_tokens=prompt,
        cached_tokens=cached,
        finish_reason=finish,
        token_source=source,
        choices=choices,
        done=done,
        first_text=first,
    )


def http_error(status: int, text: str) -> Expected:
    return Expected("http_error", status, "failed", f"http_{status}", text, done=False)


def body(what: str = "json") -> Expected:
    return Expected(what, 200, "failed", "not_a_stream", done=False)


def cancelled(events: int, first: str) -> Expected:
    return Expected(
        "stream", outcome="cancelled", events=events, token_source="events", done=False, first_text=first
    )


DEAD = Expected("dead", 0, "failed", done=False)
