"""From an exchange to its RequestRecord: the last step of measuring. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.record import CANCELLED, OK, RequestRecord
from loadgen.stream import clock
from loadgen.stream.outcome import Verdict

if TYPE_CHECKING:
    from loadgen.stream.exchange import Exchange

_TEXT_LIMIT = 2000


def fill_record(record: RequestRecord, exchange: Exchange, verdict: Verdict) -> None:
    """Write what `exchange` measured into `record`; `verdict` says what became of it."""
    if exchange.cancelled:
        record.outcome, record.error, record.error_text = CANCELLED, None, None
    else:
        record.outcome, record.error = verdict.outcome, verdict.error
        record.error_text = verdict.error_text[:_TEXT_LIMIT] if verdict.error_text else None
    _fill_times(record, exchange)
    _fill_stream(record, exchange)
    _fill_tokens(record, exchange)


def tpot_ms(
    ttft_ms: float | None, e2e_ms: float | None, output_tokens: int | None, first_event_tokens: int = 1
) -> float | None:
    """Time per output token after the first event: (e2e - ttft) / (output_tokens - tokens in the first
    event), in ms; None where that is nothing. With one token an event it is the usual (n - 1)."""
    if ttft_ms is None or e2e_ms is None or output_tokens is None:
        return None
    rest = output_tokens - first_event_tokens
    return (e2e_ms - ttft_ms) / rest if rest > 0 else None


def _fill_times(record: RequestRecord, exchange: Exchange) -> None:
    t = exchange.timeline
    sent = exchange.sent_ns
    record.sent_ns = sent
    record.clock = clock.KERNEL if exchange.stamped else clock.READ
    record.clock_step = exchange.clock_step
    record.headers_ms = None if exchange.headers_ns is None else _ms(exchange.headers_ns - sent)
    record.complete_ms = None if exchange.complete_ns is None else _ms(exchange.complete_ns - sent)
    record.first_event_ms = _ms(t.first_event)
    record.first_event_error_ms = t.first_event_error / 1e6
    record.ttft_ms = _ms(t.first_text)
    record.ttft_error_ms = t.first_text_error / 1e6
    record.ttfa_ms = _ms(t.first_answer)
    record.ttfa_error_ms = t.first_answer_error / 1e6
    record.e2e_ms = _ms(t.last_text)
    record.e2e_error_ms = t.last_text_error / 1e6
    record.connect_ms = _ms(exchange.connect_ns)
    record.connection_reused = exchange.reused
    record.replica = exchange.replica
    record.send_lag_ms = _ms(exchange.send_lag_ns)
    record.read_lag_ms = exchange.read_lag_ns / 1e6


def _fill_stream(record: RequestRecord, exchange: Exchange) -> None:
    t = exchange.timeline
    record.status = exchange.status
    record.response_id = t.response_id
    record.finish_reason = t.tally.finish_reason
    record.response_bytes = exchange.bytes
    record.events = t.events
    record.event_us = [ns // 1000 for ns in t.text_ns]
    record.event_tokens = t.event_tokens
    record.coalesced = t.coalesced.tolist()
    record.coalesced_events = len(t.coalesced)
    record.coalesced_error_ms = max(t.errors_ns, default=0) / 1e6


def _fill_tokens(record: RequestRecord, exchange: Exchange) -> None:
    t = exchange.timeline
    usage = t.tally.usage()
    record.asked_output_tokens = exchange.asked_output_tokens
    record.prompt_tokens = usage.prompt_tokens
    record.cached_tokens = usage.cached_tokens
    record.server_timings = t.tally.timings
    texts = len(t.text_ns)
    if usage.output_tokens is not None:
        record.output_tokens, record.token_source = usage.output_tokens, t.tally.token_source
    elif texts:
        record.output_tokens, record.token_source = texts, "events"
    if record.event_tokens:
        record.first_event_tokens = record.event_tokens[0]
    elif record.output_tokens is not None and record.output_tokens == texts:
        record.first_event_tokens = 1
    record.tpot_ms = tpot_ms(
        record.ttft_ms, record.e2e_ms, record.output_tokens, record.first_event_tokens or 1
    )
    asked = record.asked_output_tokens
    # Events are not tokens: one that ends inside a character gives no event. The server's word counts more.
    reached = record.token_source == "events" and record.finish_reason == "length"
    record.short_answer = (
        record.outcome == OK
        and asked is not None
        and record.output_tokens is not None
        and record.output_tokens < asked
        and not reached
    )


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e6
