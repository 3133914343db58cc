"""From how an exchange went to ok / failed and the kind of failure. Pure.

Neither a 200 nor [DONE] proves success: servers report errors inside a 200, end a stream without a word,
or answer with something that is no event stream.
"""

from __future__ import annotations

from typing import NamedTuple

from loadgen.record import FAILED, OK

CONNECT = "connect"
TLS = "tls"
PROXY = "proxy"
RESET = "reset"
TIMEOUT_FIRST_TOKEN = "timeout_first_token"
TIMEOUT_GAP = "timeout_gap"
TIMEOUT_TOTAL = "timeout_total"
IN_STREAM = "in_stream"
TRUNCATED = "truncated"
NOT_A_STREAM = "not_a_stream"
COMPRESSED = "compressed"
MALFORMED = "malformed"
NO_TEXT = "no_text"


class Verdict(NamedTuple):
    """outcome, kind of error and its text, as RequestRecord has them."""

    outcome: str
    error: str | None = None
    error_text: str | None = None


def judge(
    *,
    status: int | None,
    content_type: str,
    content_encoding: str,
    complete: bool,
    transport_error: Verdict | None,
    http_error_text: str,
    stream_error: str | None,
    malformed: str | None,
    finished: bool,
    text_events: int,
    output_tokens: int | None,
) -> Verdict:
    """The verdict on one exchange; the first of these that applies.

    `complete`: the body ended as its framing says. `transport_error`: connection failure or time-out,
    which a stream that had already finished does not suffer from. `finished`: [DONE] or a finish reason.
    """
    if status is None:
        return transport_error or Verdict(FAILED, TRUNCATED, "the connection closed before a response")
    if status != 200:
        return Verdict(FAILED, f"http_{status}", http_error_text)
    if content_encoding not in ("", "identity"):
        return Verdict(FAILED, COMPRESSED, f"content-encoding {content_encoding}, though identity was asked")
    if content_type.partition(";")[0].strip().lower() != "text/event-stream":
        return Verdict(FAILED, NOT_A_STREAM, f"content-type {content_type or 'missing'}: {http_error_text}")
    if stream_error is not None:
        return Verdict(FAILED, IN_STREAM, stream_error)
    if malformed is not None:
        if transport_error is not None or not complete:
            return transport_error or Verdict(FAILED, TRUNCATED, malformed)
        return Verdict(FAILED, MALFORMED, malformed)
    if not finished:
        if transport_error is not None:
            return transport_error
        return Verdict(
            FAILED, TRUNCATED, f"ended after {text_events} text events without finish_reason and [DONE]"
        )
    if text_events == 0 and not output_tokens:
        return Verdict(FAILED, NO_TEXT, "finished without any generated text or token count")
    return Verdict(OK)
