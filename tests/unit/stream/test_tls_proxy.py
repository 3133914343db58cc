"""TLS keeps the kernel's times and is verified; proxies are used as the environment says."""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import base64
import ssl
from pathlib import Path

import gevent
import pytest
import trustme

from loadgen.config import EngineSpec, Settings
from loadgen.engines import make_engine
from loadgen.record import RequestRecord
from loadgen.stream.client import StreamClient
from loadgen.stream.proxy import proxy_for
from tests.support.wire import HEAD, TOKEN, Peer, whole_stream, wire
from tests.unit.stream.test_client import GOOD, chunked, hold_up_ms


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def client_for(url: str, **spec: object) -> StreamClient:
    return StreamClient(make_engine(EngineSpec(name="e", kind="openai", url=url, **spec), Settings()))  # type: ignore[arg-type]


def ask(client: StreamClient) -> RequestRecord:
    record = RequestRecord()
    client.send("/v1/chat/completions", b"{}").fill(record)
    return record


def serve(peer: Peer) -> None:
    while peer.request():
        whole_stream(peer, tokens=50)


def test_a_verified_server(server_context: ssl.SSLContext, ca_file: str) -> None:
    with wire(serve, server_context) as server:
        client = client_for(server.url, ca_file=ca_file)
        records = [ask(client) for _ in range(3)]
        assert server.connections == 1
    assert [r.outcome for r in records] == ["ok"] * 3
    assert [r.output_tokens for r in records] == [50] * 3
    assert records[0].clock in ("kernel", "read")


def test_a_server_that_can_not_be_verified_is_refused(server_context: ssl.SSLContext) -> None:
    with wire(serve, server_context) as server:
        record = ask(client_for(server.url))
        assert server.requests == []
    assert (record.outcome, record.error) == ("failed", "tls")
    assert "certificate" in (record.error_text or "")


def test_verification_can_be_switched_off(server_context: ssl.SSLContext) -> None:
    with wire(serve, server_context) as server:
        assert ask(client_for(server.url, verify_tls=False)).outcome == "ok"


def test_plain_http_behind_an_https_address() -> None:
    def plain(peer: Peer) -> None:
        peer.sock.recv(65536)
        peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with wire(plain) as server:
        record = ask(client_for(server.url.replace("http:", "https:")))
    assert (record.outcome, record.error) == ("failed", "tls")


def test_the_kernels_time_survives_tls(server_context: ssl.SSLContext, ca_file: str) -> None:
    def slow(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD)
        gevent.sleep(0.02)
        peer.chunk(TOKEN)
        hold_up_ms(60)
        gevent.sleep(0.02)
        peer.send(chunked(GOOD))

    with wire(slow, server_context) as server:
        record = ask(client_for(server.url, ca_file=ca_file))
    if record.clock != "kernel":
        pytest.skip("no kernel time stamps on this system")
    assert record.outcome == "ok"
    assert record.ttft_ms is not None
    assert record.headers_ms is not None
    assert record.ttft_ms < record.headers_ms + 50
    assert (record.read_lag_ms or 0) > 30


def test_a_tls_connection_cut_in_mid_stream(server_context: ssl.SSLContext, ca_file: str) -> None:
    def cut(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD)
        peer.chunk(TOKEN)
        peer.sock.close()

    with wire(cut, server_context) as server:
        record = ask(client_for(server.url, ca_file=ca_file))
    assert (record.outcome, record.error) == ("failed", "truncated")
    assert len(record.event_us) == 1


# --- proxies ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("http://gpu:8000", {}, None),
        ("http://gpu:8000", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128"),
        ("http://gpu:8000", {"http_proxy": "p:3128"}, "http://p:3128"),
        ("https://gpu", {"HTTP_PROXY": "http://p:3128"}, None),
        ("https://gpu", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://gpu", {"ALL_PROXY": "http://p:3128"}, "http://p:3128"),
        ("http://gpu:8000", {"HTTP_PROXY": "http://p:3128", "NO_PROXY": "gpu"}, None),
        ("http://127.0.0.1:8000", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://localhost:8000", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://[::1]:8000", {"HTTP_PROXY": "http://p:3128"}, None),
    ],
)
def test_which_proxy(
    url: str, env: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected


def test_a_plain_request_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with wire(serve) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        record = ask(client_for("http://gpu.example:8000"))
        head = proxy.requests[0].decode()
    assert record.outcome == "ok"
    assert head.startswith("POST http://gpu.example:8000/v1/chat/completions HTTP/1.1\r\n")
    assert "Host: gpu.example:8000\r\n" in head
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'user:p@ss').decode()}\r\n" in head


def test_a_tls_request_through_a_tunnel(
    server_context: ssl.SSLContext, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("gpu.example").configure_cert(context)
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))

    def tunnel(peer: Peer) -> None:
        request = peer.request()
        assert request is not None
        assert request.startswith(b"CONNECT gpu.example:443 HTTP/1.1\r\n")
        peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner = context.wrap_socket(peer.sock, server_side=True)
        inside = Peer(inner, 1)
        inside.request()
        whole_stream(inside, tokens=3)
        inside.gone()

    with wire(tunnel) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        record = ask(client_for("https://gpu.example", ca_file=str(ca_file)))
    assert (record.outcome, record.error_text) == ("ok", None)
    assert record.output_tokens == 3


def test_a_proxy_that_refuses_the_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with wire(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        record = ask(client_for("https://gpu.example"))
    assert (record.outcome, record.error) == ("failed", "proxy")
    assert "407" in (record.error_text or "")
