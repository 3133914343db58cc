"""Each fault does on the wire what its line of help says."""

from __future__ import annotations

import json
import re
import zlib

import pytest

from loadgen.sim.faults import FAULTS
from loadgen.sim.launch import SimProcess
from tests.sim.raw import Got, Raw, chat, payloads, split_chunks

TESTED: set[str] = set()


def ask(sim: SimProcess, fault: str, *, tokens: int = 8, silence_s: float | None = None) -> Got:
    TESTED.add(fault.partition(":")[0])
    with Raw(sim.url) as c:
        return c.ask(chat(tokens=tokens, fault=fault), silence_s=silence_s)


def normal(sim: SimProcess) -> Got:
    with Raw(sim.url) as c:
        return c.ask(chat())


def lf(body: bytes) -> bytes:
    return body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def body_of(got: Got) -> bytes:
    """The body without looking at how HTTP frames it."""
    return b"".join(split_chunks(got.raw.partition(b"\r\n\r\n")[2])[0])


@pytest.mark.parametrize(("fault", "newline"), [("crlf", b"\r\n"), ("cr", b"\r")])
def test_newlines(sim: SimProcess, fault: str, newline: bytes) -> None:
    body = ask(sim, fault).body
    assert body.endswith(newline * 2)
    assert set(re.findall(rb"[\r\n]+", body)) == {newline * 2}
    assert payloads(lf(body))[-1] == b"[DONE]"


def test_mixed_newlines(sim: SimProcess) -> None:
    body = ask(sim, "mixed-newlines").body
    for ending in (rb"[^\r]\n", rb"\r\n", rb"\r[^\n]"):
        assert re.search(ending, body)
    events = re.sub(rb"\r\n|\r", b"\n", body).rstrip(b"\n").split(b"\n\n")
    assert [e.count(b"data:") for e in events] == [1] * len(events)
    text = "".join(re.findall(r'"content":"([^"]*)"', body.decode()))
    assert text == normal(sim).text


def test_no_space(sim: SimProcess) -> None:
    body = ask(sim, "no-space").body
    assert b"data: " not in body
    assert b"data:{" in body
    assert b"data:[DONE]" in body


def test_fields(sim: SimProcess) -> None:
    body = ask(sim, "fields").body
    for line in (b"id: 1\n", b"event: message\n", b"retry: 3000\n", b": a comment\n"):
        assert line in body


def test_bom(sim: SimProcess) -> None:
    body = ask(sim, "bom").body
    assert body.startswith(b"\xef\xbb\xbfdata: ")
    assert body.count(b"\xef\xbb\xbf") == 1


def test_ping(sim: SimProcess) -> None:
    assert ask(sim, "ping").body.count(b":\n\n") == len(normal(sim).payloads)
    assert ask(sim, "ping:5").body.count(b":\n\n") == len(normal(sim).payloads) // 5


def test_no_blank_end(sim: SimProcess) -> None:
    assert ask(sim, "no-blank-end").body.endswith(b"data: [DONE]")


def test_reorder(sim: SimProcess) -> None:
    ours, plain = ask(sim, "reorder"), normal(sim)
    assert [list(e) for e in ours.events] == [list(reversed(e)) for e in plain.events]
    assert ours.text == plain.text


def test_spaces(sim: SimProcess) -> None:
    ours = ask(sim, "spaces")
    assert b'"choices"\t: [' in ours.body
    assert ours.text == normal(sim).text


def test_tokens_per_event(sim: SimProcess) -> None:
    ours, plain = ask(sim, "tokens-per-event:3"), normal(sim)
    texts = [t for e in ours.events for c in e["choices"] if (t := c["delta"].get("content"))]
    assert len(texts) == 3  # 8 tokens: 3 + 3 + 2
    assert ours.text == plain.text
    assert ours.events[-1]["usage"]["completion_tokens"] == 8


def test_tricky_text(sim: SimProcess) -> None:
    got = ask(sim, "tricky-text", tokens=300)
    assert rb"\"usage\":{" in got.body  # in one event
    assert '"usage":{' in got.text
    assert '"content":"' in got.text
    assert "\u2028" in got.text
    assert "\\" in got.text
    assert got.events[-1]["usage"]["completion_tokens"] == 300


def test_reasoning(sim: SimProcess, kind: str) -> None:
    name = {"vllm": "reasoning", "llamacpp": "reasoning_content"}[kind]
    deltas = [c["delta"] for e in ask(sim, "reasoning:3").events for c in e["choices"]]
    assert sum(bool(d.get(name)) for d in deltas) == 3
    assert sum(bool(d.get("content")) for d in deltas) == 5


def test_tool_calls(sim: SimProcess) -> None:
    events = ask(sim, "tool-calls").events
    calls = [c["delta"]["tool_calls"] for e in events for c in e["choices"] if "tool_calls" in c["delta"]]
    assert "".join(c[0]["function"]["arguments"] for c in calls) == normal(sim).text


def test_no_done(sim: SimProcess) -> None:
    got = ask(sim, "no-done")
    assert b"[DONE]" not in got.body
    assert '"finish_reason":"length"' in got.body.decode()


def test_no_finish(sim: SimProcess) -> None:
    got = ask(sim, "no-finish")
    assert b"[DONE]" not in got.body
    assert all(c["finish_reason"] is None for e in got.events for c in e["choices"])
    assert got.text == normal(sim).text


def test_no_usage(sim: SimProcess) -> None:
    got = ask(sim, "no-usage")
    assert b"usage" not in got.body
    assert b"timings" not in got.body
    assert got.payloads[-1] == b"[DONE]"


def test_error_in_mid_stream(sim: SimProcess, kind: str) -> None:
    """As the engines do it: vLLM says [DONE] after the error, llama.cpp does not."""
    got = ask(sim, "error:3")
    assert got.status == 200
    errors = [e for e in got.events if "error" in e]
    assert len(errors) == 1
    assert errors[0]["error"]["code"] == 500
    assert (got.payloads[-1] == b"[DONE]") == (kind == "vllm")
    assert got.raw.endswith(b"0\r\n\r\n")


def test_split_into_small_writes(sim: SimProcess) -> None:
    got = ask(sim, "split:50", tokens=2)
    assert len(got.reads) > 15
    assert got.text == normal(sim).text[: len(got.text)]
    assert got.payloads[-1] == b"[DONE]"


def test_split_anywhere(sim: SimProcess) -> None:
    got = ask(sim, "split", tokens=3)
    assert len(got.reads) > 12
    assert got.payloads[-1] == b"[DONE]"


def test_split_inside_characters(sim: SimProcess) -> None:
    got = ask(sim, "split-utf8", tokens=30)
    broken = 0
    for _, data in got.reads:
        try:
            data.decode()
        except UnicodeDecodeError:
            broken += 1
    assert broken > 2
    assert got.events[-1]["usage"]["completion_tokens"] == 30


def test_coalesce(sim: SimProcess) -> None:
    got = ask(sim, "coalesce:5", tokens=40)
    assert len(got.payloads) >= 42
    assert len(got.reads) <= 2 + len(got.payloads) // 5 + 2  # the kernel may merge, never split so small
    assert got.payloads[-1] == b"[DONE]"


def test_delay(sim: SimProcess) -> None:
    got = ask(sim, "delay:60", tokens=20)
    gaps = [b[0] - a[0] for a, b in zip(got.reads, got.reads[1:], strict=False)]
    assert sum(gap > 50e6 for gap in gaps) >= 2
    assert got.payloads[-1] == b"[DONE]"


def test_slow_headers(sim: SimProcess) -> None:
    got = ask(sim, "slow-headers:1", tokens=1)
    assert len(got.reads) > len(got.head) / 5
    assert got.status == 200


def test_trickled_head(sim: SimProcess) -> None:
    got = ask(sim, "trickled-head:10")
    assert b"\r\n\r\n" not in got.reads[0][1]
    assert len(got.reads) > 3
    assert got.text == normal(sim).text


def test_reset(sim: SimProcess) -> None:
    got = ask(sim, "reset:3")
    assert got.ended == "reset"


def test_close_in_mid_stream(sim: SimProcess) -> None:
    got = ask(sim, "close:3")
    assert got.ended == "eof"
    assert not got.raw.endswith(b"0\r\n\r\n")
    assert len([e for e in got.events if e["choices"] and e["choices"][0]["delta"].get("content")]) == 3


def test_stall(sim: SimProcess) -> None:
    got = ask(sim, "stall:3", silence_s=0.3)
    assert got.ended == "silent"
    assert len([e for e in got.events if e["choices"] and e["choices"][0]["delta"].get("content")]) == 3


@pytest.mark.parametrize("status", [429, 500, 503])
def test_error_statuses(sim: SimProcess, status: int) -> None:
    got = ask(sim, str(status))
    assert got.status == status
    assert json.loads(got.body)["error"]["code"] == status


def test_loading_body(sim: SimProcess, kind: str) -> None:
    if kind == "llamacpp":
        loading = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'
        assert ask(sim, "503").body == loading


def test_gzip(sim: SimProcess) -> None:
    got = ask(sim, "gzip")
    assert got.header("content-encoding") == "gzip"
    assert payloads(zlib.decompress(got.body, 31))[-1] == b"[DONE]"


def test_connection_close(sim: SimProcess) -> None:
    got = ask(sim, "connection-close")
    assert got.header("connection") == "close"
    assert got.header("keep-alive") is None
    assert got.ended == "eof"
    assert got.payloads[-1] == b"[DONE]"


def test_http10(sim: SimProcess) -> None:
    got = ask(sim, "http10")
    assert got.head.startswith(b"HTTP/1.0 200 OK\r\n")
    assert got.header("transfer-encoding") is None
    assert got.ended == "eof"
    assert payloads(got.raw.partition(b"\r\n\r\n")[2])[-1] == b"[DONE]"


def test_content_type(sim: SimProcess) -> None:
    assert ask(sim, "content-type").header("content-type") == "text/html"
    assert ask(sim, "content-type:text/plain").header("content-type") == "text/plain"


def test_several_at_once(sim: SimProcess) -> None:
    got = ask(sim, "crlf, no-space, bom")
    assert got.body.startswith(b"\xef\xbb\xbfdata:{")
    assert got.body.endswith(b"data:[DONE]\r\n\r\n")


def test_an_unknown_fault_is_refused(sim: SimProcess) -> None:
    with Raw(sim.url) as c:
        got = c.ask(chat(fault="no-such-thing"))
    assert got.status == 400
    assert b"no-such-thing" in got.body


def test_the_log_names_the_faults(sim: SimProcess) -> None:
    got = ask(sim, "reset:2")
    assert got.ended == "reset"
    row = next(r for r in reversed(sim.log_records()) if r["faults"] == ["reset:2"])
    assert row["outcome"] == "fault"
    assert row["tokens"] == 2


def test_every_fault_was_tested() -> None:
    assert set(FAULTS) <= TESTED
