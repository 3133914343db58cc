"""The client over real sockets: framing, connections, failures, time-outs, being stopped."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import contextlib
import gzip
import random
import socket
import time
from collections.abc import Callable

import gevent
import gevent.event
import pytest

from loadgen.config import EngineSpec, Settings, Timeouts
from loadgen.engines import make_engine
from loadgen.record import RequestRecord
from loadgen.stream import reader as reader_module
from loadgen.stream.client import StreamClient
from loadgen.stream.reader import Reader
from tests.support.wire import DONE, END, FINISH, HEAD, TOKEN, Peer, usage, whole_stream, wire
from tests.unit.stream.test_timeline import STYLES, build


def client_for(url: str, reader: Reader | None = None, **limits: float) -> StreamClient:
    spec = EngineSpec(name="e", kind="openai", url=url)
    return StreamClient(make_engine(spec, Settings()), reader, Timeouts(**limits))


def ask(client: StreamClient, **options: object) -> RequestRecord:
    record = RequestRecord()
    client.send("/v1/chat/completions", b'{"x":1}', **options).fill(record)  # type: ignore[arg-type]
    return record


def one(handler: Callable[[Peer], None], **limits: float) -> RequestRecord:
    """The record of one request to a server that does `handler` after it has the request."""

    def serve(peer: Peer) -> None:
        while peer.request():
            handler(peer)

    with wire(serve) as server:
        client = client_for(server.url, **limits)
        try:
            return ask(client)
        finally:
            client.close()


def send(*pieces: bytes) -> Callable[[Peer], None]:
    def handler(peer: Peer) -> None:
        for piece in pieces:
            peer.send(piece)
        peer.sock.close()

    return handler


def chunked(*bodies: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(b), b) for b in bodies) + END


GOOD = TOKEN + FINISH + usage(1) + DONE
PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + chunked(GOOD),
        HEAD + chunked(*(bytes([b]) for b in GOOD)),
        PLAIN_HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
        PLAIN_HEAD + b"\r\n" + GOOD,  # until the connection closes
        b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n" + GOOD,
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + chunked(GOOD),
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HEAD + chunked(GOOD),
        HEAD + chunked(GOOD.replace(b"\n", b"\r\n")),
        HEAD + chunked(b"\xef\xbb\xbf" + GOOD),
        HEAD + chunked(GOOD.replace(b"data: ", b"data:")),
        HEAD + chunked(TOKEN + FINISH + usage(1)),  # no [DONE]
        HEAD + chunked(TOKEN + usage(1) + DONE),  # no finish_reason
        HEAD + chunked(GOOD[:-2]),  # no last blank line
        HEAD + chunked(GOOD)[:-5],  # [DONE] came, the last chunk did not
        HEAD.replace(b"Content-Type", b"CONTENT-TYPE").replace(b"chunked", b"Chunked") + chunked(GOOD),
        HEAD + chunked(GOOD) + b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n",  # nobody's
        HEAD + chunked(GOOD) + END,
        PLAIN_HEAD + b"Content-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(GOOD),
    ],
)
@pytest.mark.parametrize("bytewise", [False, True])
def test_every_lawful_framing_is_understood(answer: bytes, bytewise: bool) -> None:
    pieces = [answer[i : i + 1] for i in range(len(answer))] if bytewise else [answer]
    record = one(send(*pieces))
    assert (record.outcome, record.error_text) == ("ok", None)
    assert record.output_tokens == 1
    assert len(record.event_us) == 1
    assert record.response_id == "c-1"


ERROR_EVENT = b'data: {"error":{"message":"kv cache full","code":500}}\n\n'
GZIPPED = gzip.compress(GOOD)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (HEAD + chunked(TOKEN), "truncated", "without finish_reason"),
        (HEAD + chunked(TOKEN)[:-5], "truncated", "middle of the body"),
        (HEAD + chunked(TOKEN, ERROR_EVENT), "in_stream", "kv cache full"),
        (HEAD + chunked(TOKEN, ERROR_EVENT, DONE), "in_stream", "kv cache full"),
        (HEAD + chunked(ERROR_EVENT, DONE), "in_stream", "kv cache full"),
        (HEAD + chunked(b"data: oops\n\n", DONE), "malformed", "oops"),
        (HEAD + chunked(FINISH, DONE), "no_text", "without any generated text"),
        (HEAD + END, "truncated", "0 text events"),
        (
            PLAIN_HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(GZIPPED) + GZIPPED,
            "compressed",
            "gzip",
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            "not_a_stream",
            "application/json",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "not_a_stream", "missing"),
        (b"HTTP/1.1 429 Too Many\r\nContent-Length: 4\r\n\r\nslow", "http_429", "slow"),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "http_500", None),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "http_302", None),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "http_204", None),
        (b"SSH-2.0-OpenSSH\r\n", "malformed", "not HTTP"),
        (HEAD + b"zz\r\n", "malformed", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000, "malformed", "response head"),
        (b"", "reset", "without a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Ty", "reset", "without a response"),
    ],
)
def test_what_is_no_success(answer: bytes, error: str, text: str | None) -> None:
    record = one(send(answer))
    assert (record.outcome, record.error) == ("failed", error)
    assert (text or "") in (record.error_text or "")


def test_a_reset_in_mid_stream_is_a_failure_that_keeps_what_came() -> None:
    def handler(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(TOKEN)
        gevent.sleep(0.05)  # a RST throws away what the client has not read yet
        peer.reset()

    record = one(handler)
    assert (record.outcome, record.error) == ("failed", "reset")
    assert len(record.event_us) == 1
    assert record.ttft_ms is not None


def test_the_request_that_is_sent() -> None:
    def serve(peer: Peer) -> None:
        while peer.request():
            whole_stream(peer)

    with wire(serve) as server:
        ask(client_for(server.url + "/base/v1"))
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/v1/chat/completions HTTP/1.1"
    assert f"Host: 127.0.0.1:{server.port}" in lines
    assert "Accept-Encoding: identity" in lines
    assert "Content-Length: 7" in lines
    assert body == b'{"x":1}'


# --- connections -----------------------------------------------------------------------------------------


def test_a_kept_connection_is_reused() -> None:
    def serve(peer: Peer) -> None:
        while peer.request():
            whole_stream(peer)

    with wire(serve) as server:
        client = client_for(server.url)
        records = [ask(client) for _ in range(3)]
        assert server.connections == 1
    assert [r.connection_reused for r in records] == [False, True, True]
    assert records[0].connect_ms is not None
    assert records[1].connect_ms is None


def test_connection_close_is_honoured() -> None:
    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + chunked(GOOD))
        assert peer.gone()

    with wire(serve) as server:
        client = client_for(server.url)
        assert [ask(client).outcome for _ in range(2)] == ["ok", "ok"]
        assert server.connections == 2


def test_a_server_that_closes_in_spite_of_keep_alive_fails_nothing() -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=5, max=100\r\n\r\n")

    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(head + chunked(GOOD))
        peer.sock.close()

    with wire(serve) as server:
        client = client_for(server.url)
        records = [ask(client) for _ in range(20)]
        assert server.connections == 20
        assert len(server.requests) == 20
    assert {r.outcome for r in records} == {"ok"}


def test_a_connection_closed_just_as_the_request_is_written_is_replaced_silently() -> None:
    def serve(peer: Peer) -> None:
        peer.request()
        whole_stream(peer)
        if peer.number == 1:
            peer.request()  # takes the second request and closes without a byte
        else:
            peer.request()

    with wire(serve) as server:
        client = client_for(server.url)
        assert [ask(client).outcome for _ in range(2)] == ["ok", "ok"]
        assert server.connections == 2


def test_a_fresh_connection_closed_without_a_byte_is_the_servers_failure() -> None:
    def serve(peer: Peer) -> None:
        peer.request()
        peer.sock.close()

    with wire(serve) as server:
        record = ask(client_for(server.url))
        assert server.connections == 1
    assert (record.outcome, record.error) == ("failed", "reset")


def test_connection_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        record = ask(client_for(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert (record.outcome, record.error) == ("failed", "connect")
    assert "refused" in (record.error_text or "").lower()
    assert record.sent_ns > 0
    assert record.headers_ms is None


def test_an_unknown_host() -> None:
    record = ask(client_for("http://no-such-host.invalid"))
    assert (record.outcome, record.error) == ("failed", "connect")


def test_the_answer_to_a_request_that_was_not_read_to_its_end_is_kept() -> None:
    def serve(peer: Peer) -> None:
        peer.sock.recv(100)
        peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
        peer.gone()

    with wire(serve) as server:
        record = RequestRecord()
        client_for(server.url).send("/v1/chat/completions", b"x" * 3_000_000).fill(record)
    assert (record.error, record.error_text) == ("http_413", "big")


def test_a_large_request_is_written_whole() -> None:
    def serve(peer: Peer) -> None:
        peer.request()
        whole_stream(peer)

    body = b"x" * 5_000_000
    with wire(serve) as server:
        record = RequestRecord()
        client_for(server.url).send("/v1/chat/completions", body).fill(record)
        assert server.requests[0].endswith(body)
    assert record.outcome == "ok"


# --- time-outs -------------------------------------------------------------------------------------------


def hang_after(*pieces: bytes) -> Callable[[Peer], None]:
    def handler(peer: Peer) -> None:
        for piece in pieces:
            peer.send(piece)
        assert peer.gone()  # the client must hang up

    return handler


def send_until_closed(peer: Peer, data: bytes) -> None:
    with contextlib.suppress(OSError):
        while True:
            peer.chunk(data)
            gevent.sleep(0.02)


@pytest.mark.parametrize("start", [[], [b"HTTP/1.1 200 OK\r\n"], [HEAD], [HEAD, b"5\r\n:\n\n\n\n\r\n"]])
def test_no_first_token(start: list[bytes]) -> None:
    record = one(hang_after(*start), first_token_s=0.2)
    assert (record.outcome, record.error) == ("failed", "timeout_first_token")


def test_a_role_chunk_is_no_first_token() -> None:
    role = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
    record = one(hang_after(HEAD, b"%x\r\n%s\r\n" % (len(role), role)), first_token_s=0.2)
    assert record.error == "timeout_first_token"
    assert record.first_event_ms is not None


def test_a_stream_that_hangs_between_tokens() -> None:
    record = one(hang_after(HEAD, b"%x\r\n%s\r\n" % (len(TOKEN), TOKEN)), gap_s=0.2)
    assert record.error == "timeout_gap"
    assert len(record.event_us) == 1


def test_pings_are_no_tokens() -> None:
    def handler(peer: Peer) -> None:
        peer.send(HEAD)
        peer.chunk(TOKEN)
        send_until_closed(peer, b":\n\n")

    assert one(handler, gap_s=0.3).error == "timeout_gap"


def test_the_whole_request_takes_too_long() -> None:
    def handler(peer: Peer) -> None:
        peer.send(HEAD)
        send_until_closed(peer, TOKEN)

    record = one(handler, total_s=0.4)
    assert record.error == "timeout_total"
    assert record.event_us


def test_a_finished_stream_that_never_closes_is_a_success() -> None:
    body = b"%x\r\n%s\r\n" % (len(GOOD), GOOD)
    record = one(hang_after(HEAD, body), gap_s=0.2)
    assert record.outcome == "ok"


def test_a_server_that_does_not_take_the_connection() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        record = ask(client_for(f"http://127.0.0.1:{address[1]}", connect_s=0.3))
        for filler in fillers:
            filler.close()
    assert record.error == "connect"
    assert "0.3 s" in (record.error_text or "")


# --- being stopped ---------------------------------------------------------------------------------------


def test_a_user_stopped_in_mid_stream_leaves_a_cancelled_record() -> None:
    started = gevent.event.Event()
    closed = gevent.event.Event()

    def serve(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD)
        peer.chunk(TOKEN)
        started.set()
        if peer.gone():
            closed.set()

    with wire(serve) as server:
        client = client_for(server.url)
        user = gevent.spawn(ask, client)
        assert started.wait(10)
        gevent.sleep(0.05)
        user.kill()
        assert closed.wait(10)
        exchange = client.cancelled_exchange()
        assert exchange is not None
        record = RequestRecord()
        exchange.fill(record)
        assert Reader.get().live["e"].in_flight == 0
    assert (record.outcome, record.error) == ("cancelled", None)
    assert len(record.event_us) == 1
    assert record.complete_ms is not None


# --- times -----------------------------------------------------------------------------------------------


def hold_up_ms(duration: float) -> None:
    """Keep this process from reading, as a busy generator does."""
    until = time.monotonic() + duration / 1e3
    while time.monotonic() < until:
        pass


@pytest.mark.parametrize("merged", [False, True])
def test_a_process_that_is_held_up_still_knows_when_the_token_came(merged: bool) -> None:
    def handler(peer: Peer) -> None:
        peer.send(HEAD)
        gevent.sleep(0.02)
        peer.chunk(TOKEN)
        hold_up_ms(60)
        if merged:  # the kernel puts these behind the token, under one time
            peer.send(chunked(FINISH, usage(1), DONE))
        else:
            gevent.sleep(0.02)
            peer.send(chunked(FINISH, usage(1), DONE))

    record = one(handler)
    if record.clock != "kernel":
        pytest.skip("no kernel time stamps on this system")
    assert record.headers_ms is not None
    assert record.ttft_ms is not None
    if merged:
        assert (record.coalesced, record.coalesced_events) == ([0], 1)
        assert record.ttft_ms - record.ttft_error_ms < record.headers_ms + 50
        assert record.ttft_error_ms > 50
        assert record.e2e_error_ms == record.ttft_error_ms == record.coalesced_error_ms
    else:
        assert record.ttft_ms < record.headers_ms + 50
        assert record.read_lag_ms is not None
        assert record.read_lag_ms > 30
        assert (record.coalesced_events, record.ttft_error_ms) == (0, 0.0)


def test_without_epoll_and_stamps_the_clock_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module.clock, "enable_stamps", lambda sock: False)

    def serve(peer: Peer) -> None:
        while peer.request():
            whole_stream(peer, tokens=200)

    with wire(serve) as server:
        client = client_for(server.url, Reader())
        records = [ask(client) for _ in range(2)]
    assert [r.outcome for r in records] == ["ok", "ok"]
    assert [r.clock for r in records] == ["read", "read"]
    assert [len(r.event_us) for r in records] == [200, 200]


@pytest.mark.parametrize("seed", range(8))
def test_events_taken_on_the_spot_count_like_those_that_are_parsed(seed: int) -> None:
    """One event a chunk, most of them plain, some with escapes, empty, merged or in pieces."""
    dice = random.Random(seed)
    texts = [
        dice.choice(["a", " the", " w123", "é", "\n", '"', "", "\\", " usage", "🦀"]) for _ in range(400)
    ]
    payloads = [build(dice.choice(["content"] * 20 + ["reasoning"]), t, STYLES[0], 0) for t in texts]
    sent = bytearray(HEAD)

    def handler(peer: Peer) -> None:
        peer.send(HEAD)
        for payload in payloads:
            data = b"%x\r\n%s\r\n" % (len(payload), payload)
            sent.extend(data)
            if dice.random() < 0.1:
                peer.send(data[:20])
                gevent.sleep(0)
                data = data[20:]
            peer.send(data)
            if dice.random() < 0.8:
                gevent.sleep(0)
        end = chunked(FINISH, usage(400), DONE)
        sent.extend(end)
        peer.send(end)

    record = one(handler)
    assert (record.outcome, record.error_text) == ("ok", None)
    assert record.events == 400 + 3
    assert len(record.event_us) == sum(1 for t in texts if t)
    assert record.event_us == sorted(record.event_us)
    assert record.response_bytes == len(sent)
    assert record.output_tokens == 400
    assert record.e2e_ms is not None
    assert round(record.e2e_ms * 1000) - record.event_us[-1] in (0, 1)


def test_many_streams_at_once() -> None:
    def serve(peer: Peer) -> None:
        while peer.request():
            peer.send(HEAD)
            for _ in range(300):
                peer.chunk(TOKEN)
                gevent.sleep(0)
            peer.chunk(FINISH + usage(300) + DONE)
            peer.send(END)

    with wire(serve) as server:
        clients = [client_for(server.url) for _ in range(40)]
        jobs = [gevent.spawn(ask, c) for c in clients]
        gevent.joinall(jobs, raise_error=True)
        records = [j.value for j in jobs]
    assert {r.outcome for r in records} == {"ok"}
    assert {len(r.event_us) for r in records} == {300}
    assert {r.output_tokens for r in records} == {300}
