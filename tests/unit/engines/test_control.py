"""Why a call does not reach an engine: one sentence each, from real sockets on loopback."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from loadgen.config import EngineSpec
from loadgen.engines import control
from loadgen.engines.control import Control
from loadgen.engines.errors import EngineError
from tests.support.canned import Answer, CannedServer, Seen, as_json


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
    ):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def a_control(url: str, *, read_s: float = 5.0, **spec: object) -> Control:
    return Control(EngineSpec(name="a", kind="vllm", url=url, **spec), connect_s=2.0, read_s=read_s)  # type: ignore[arg-type]


def problem(url: str, *, read_s: float = 5.0, **spec: object) -> tuple[str, str]:
    with pytest.raises(EngineError) as caught:
        a_control(url, read_s=read_s, **spec).get("/health")
    text = str(caught.value)
    assert text.startswith("engine a: ")
    assert "\n" not in text
    assert "Traceback" not in text
    assert "HTTPConnectionPool" not in text
    assert len(text) < 450
    return text.removeprefix("engine a: "), caught.value.reason


@contextmanager
def raw_server(sends: bytes | None) -> Iterator[int]:
    """Accepts connections; says `sends` and closes, or says nothing at all (None)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                if sends is not None:
                    connection.recv(65536)
                    connection.sendall(sends)
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in kept:
                connection.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as s:
        return int(s.getsockname()[1])


def test_connection_refused() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    text, reason = problem(url)
    assert text == (
        f"nothing listens at {url} (connection refused): start the server, "
        "or give its address with --engine a=vllm:URL"
    )
    assert reason == "unreachable"


def test_unknown_host() -> None:
    text, reason = problem("http://no-such-host.invalid:8000")
    assert text.startswith("the host name no-such-host.invalid cannot be found")
    assert reason == "unreachable"


def test_no_answer() -> None:
    with raw_server(None) as port:
        text, reason = problem(f"http://127.0.0.1:{port}", read_s=0.2)
    assert "takes connections but gave no answer to GET /health within 0.2 s" in text
    assert reason == "unreachable"


def test_closed_without_an_answer() -> None:
    with raw_server(b"") as port:
        text, _ = problem(f"http://127.0.0.1:{port}")
    assert "closed the connection without an answer to GET /health: if it speaks TLS, write https://" in text


def test_not_http() -> None:
    with raw_server(b"SSH-2.0-OpenSSH_9.6\r\n") as port:
        text, reason = problem(f"http://127.0.0.1:{port}")
    assert "cannot be reached" in text
    assert reason == "unreachable"


def test_plain_server_behind_https() -> None:
    with CannedServer({}) as server:
        text, _ = problem(server.url.replace("http:", "https:"))
    assert text.endswith("does not speak TLS: write http:// in its address")


def test_silent_server_behind_https() -> None:
    with raw_server(None) as port:
        text, _ = problem(f"https://127.0.0.1:{port}", read_s=0.2)
    assert "write http:// if it does not speak it" in text


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def tls_context(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_untrusted_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with CannedServer({"/health": Answer()}, tls=tls_context(authority, "127.0.0.1")) as server:
        text, reason = problem(server.url)
        assert "is not trusted" in text
        assert "set ca_file to the file of its authority, or verify_tls = false, in [engines.a]" in text
        assert reason == "unreachable"
        assert a_control(server.url, ca_file=str(ca_file)).get("/health").ok
        assert a_control(server.url, verify_tls=False).get("/health").ok


def test_certificate_of_another_host(authority: trustme.CA, tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with CannedServer({}, tls=tls_context(authority, "other.example")) as server:
        text, _ = problem(server.url, ca_file=str(ca_file))
    assert "is not trusted" in text


def test_missing_ca_file() -> None:
    text, reason = problem("https://127.0.0.1:1", ca_file="/no/such/file.pem")
    assert text == "ca_file /no/such/file.pem does not exist"
    assert reason == "config"


def test_ca_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    text, reason = problem("https://127.0.0.1:1", ca_file=str(tmp_path / "ca.pem"))
    assert "is no file of certificates" in text
    assert reason == "config"


def test_loopback_is_never_asked_of_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with CannedServer({"/health": Answer()}) as server:
        assert a_control(server.url).get("/health").ok


def test_dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = f"http://user:secret@127.0.0.1:{free_port()}"
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.setenv("http_proxy", proxy)
    text, _ = problem("http://gpu.example:8000")
    assert text.startswith("the proxy http://127.0.0.1:")
    assert "NO_PROXY" in text
    assert "secret" not in text


def test_redirects_are_named_and_not_followed() -> None:
    with CannedServer({"/health": Answer(308, b"", {"Location": "https://elsewhere/health"})}) as server:
        text, _ = problem(server.url)
        assert text.endswith(
            "/health redirects to https://elsewhere/health: give the engine the address that it leads to"
        )


def test_a_server_that_repeats_a_key_gives_nothing_away() -> None:
    def repeats(seen: Seen) -> Answer:
        return as_json(
            {"error": f"{seen.headers['authorization']} and {seen.headers['x-key']} are wrong"}, 401
        )

    spec = EngineSpec(
        name="a", kind="vllm", url="http://h", api_key_env="K", headers={"X-Key": "sk-other", "X-Tier": "a"}
    )
    with CannedServer({"/health": repeats}) as server:
        asked = Control(spec.model_copy(update={"url": server.url}), env={"K": "sk-secret"})
        assert asked.get("/health").text() == "HTTP 401: Bearer <secret> and <secret> are wrong"
        assert server.seen[0].headers["authorization"] == "Bearer sk-secret"


def test_large_answers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MAX_BODY", 2**20)
    with CannedServer({"/health": Answer(200, b"x" * (2**20 + 1))}) as server:
        text, reason = problem(server.url)
    assert text == "GET /health answered with more than 1 MiB"
    assert reason == "answer"


def test_a_netrc_password_does_not_replace_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password mine\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("KEY", "secret")
    with CannedServer({"/health": as_json({})}) as server:
        a_control(server.url, api_key_env="KEY").get("/health")
        a_control(server.url).get("/health")
        with_key, without = server.seen
    assert with_key.headers["authorization"] == "Bearer secret"
    assert "authorization" not in without.headers
    assert with_key.headers["accept-encoding"] == "identity"


def test_a_key_that_is_not_set() -> None:
    text, reason = problem("http://127.0.0.1:1", api_key_env="LOADGEN_TEST_NO_SUCH_KEY")
    assert "the environment variable LOADGEN_TEST_NO_SUCH_KEY is not set" in text
    assert reason == "config"
