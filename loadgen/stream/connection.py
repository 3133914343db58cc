"""Connection: a stamped socket to one server, plain or TLS, direct or through a proxy.

Connecting and the TLS handshake happen here, before `sent` and outside every measured time. TLS runs in
memory (ssl.MemoryBIO) over the same stamped socket, so that it keeps the kernel's times.
"""

from __future__ import annotations

import locust  # noqa: F401  (patches the standard library, must come first)

import base64
import socket
import ssl
import time
from typing import Any
from urllib.parse import unquote, urlsplit

import gevent
from gevent import get_hub

from loadgen.config import EngineSpec
from loadgen.record import FAILED
from loadgen.stream import clock, outcome
from loadgen.stream.proxy import proxy_for
from loadgen.tls import tls_context

RECV_BYTES = 16384
_WRITE, _READ = 2, 1


class ConnectError(Exception):
    """No connection; `verdict` says why in RequestRecord's terms."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.verdict = outcome.Verdict(FAILED, kind, text)


class Endpoint:
    """Where and how to connect, worked out once for an engine."""

    def __init__(self, spec: EngineSpec) -> None:
        parts = urlsplit(spec.url)
        self.url = spec.url
        self.tls = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.tls else 80)
        self.prefix = parts.path
        self.proxy = proxy_for(spec.url)
        self.context = tls_context(spec) if self.tls else None
        if self.context is not None:
            self.context.set_alpn_protocols(["http/1.1"])
        default = 443 if self.tls else 80
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = host if self.port == default else f"{host}:{self.port}"

    def target(self, path: str) -> str:
        """The request target: absolute for a plain request through a proxy."""
        if self.proxy and not self.tls:
            return f"http://{self.authority}{self.prefix}{path}"
        return self.prefix + path

    def proxy_headers(self) -> dict[str, str]:
        if not self.proxy:
            return {}
        parts = urlsplit(self.proxy)
        if not parts.username:
            return {}
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


class Connection:
    """An open connection. `recv` gives plain text with its kernel time; `send_all` waits cooperatively."""

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        started = time.monotonic_ns()
        self.sock: socket.socket = _connect(endpoint, timeout_s)
        self.stamped = clock.enable_stamps(self.sock)
        self.fd = self.sock.fileno()
        self._tls: ssl.SSLObject | None = None
        try:
            deadline = time.monotonic() + timeout_s
            if endpoint.proxy and endpoint.tls:
                self._tunnel(endpoint, deadline)
            if endpoint.context is not None:
                self._handshake(endpoint, deadline)
        except BaseException:
            self.close()
            raise
        self.connect_ns: int | None = time.monotonic_ns() - started
        self.used = False  # for a request

    @property
    def plain(self) -> bool:
        return self._tls is None

    def alive(self) -> bool:
        """False when the server has closed an idle connection (or sent what nobody asked for)."""
        try:
            self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            pass
        return False

    def recv(self) -> tuple[bytes, bytes, bool, bool]:
        """(plain text, kernel time as a timespec or b"", the buffer was full, end of stream). Raises OSError;
        BlockingIOError when there is nothing."""
        data, ancillary, _, _ = self.sock.recvmsg(RECV_BYTES, clock.CMSG_SPACE)
        stamp = clock.stamp_of(ancillary)
        full = len(data) == RECV_BYTES
        if self._tls is None:
            return data, stamp, full, not data
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        pieces: list[bytes] = []
        end = not data
        while True:
            try:
                piece = self._tls.read(RECV_BYTES)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                end = True
                break
            except ssl.SSLError as e:
                raise OSError(e.errno or 0, f"TLS: {e.reason or e}") from None
            if not piece:
                end = True
                break
            pieces.append(piece)
        return b"".join(pieces), stamp, full, end

    def send_all(self, data: bytes, deadline: float) -> None:
        """Raises OSError, TimeoutError."""
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        self._send_raw(data, deadline)

    def close(self) -> None:
        self.sock.close()

    # --- setting up --------------------------------------------------------------------------------------

    def _send_raw(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self.sock.send(view) :]
            except (BlockingIOError, InterruptedError):
                self._wait(_WRITE, deadline)

    def _wait(self, events: int, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        hub = get_hub()
        watcher = hub.loop.io(self.fd, events)
        try:
            with gevent.Timeout(left, TimeoutError("timed out")):
                hub.wait(watcher)
        finally:
            watcher.close()

    def _recv_raw(self, deadline: float) -> bytes:
        while True:
            try:
                return self.sock.recv(RECV_BYTES)
            except (BlockingIOError, InterruptedError):
                self._wait(_READ, deadline)

    def _handshake(self, endpoint: Endpoint, deadline: float) -> None:
        assert endpoint.context is not None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = endpoint.context.wrap_bio(self._incoming, self._outgoing, server_hostname=endpoint.host)
        try:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self._send_raw(self._outgoing.read(), deadline)
                    data = self._recv_raw(deadline)
                    if not data:
                        raise ConnectError(
                            outcome.TLS, "the server closed during the TLS handshake"
                        ) from None
                    self._incoming.write(data)
            self._send_raw(self._outgoing.read(), deadline)
        except ssl.SSLCertVerificationError as e:
            raise ConnectError(outcome.TLS, f"certificate not accepted: {e.verify_message}") from None
        except ssl.SSLError as e:
            raise ConnectError(outcome.TLS, f"TLS handshake failed: {e.reason or e}") from None
        except TimeoutError:
            raise ConnectError(outcome.CONNECT, "time-out in the TLS handshake") from None
        except OSError as e:
            raise ConnectError(outcome.TLS, f"TLS handshake failed: {e.strerror or e}") from None
        self._tls = tls

    def _tunnel(self, endpoint: Endpoint, deadline: float) -> None:
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        lines = [f"CONNECT {host}:{endpoint.port} HTTP/1.1", f"Host: {host}:{endpoint.port}"]
        lines += [f"{k}: {v}" for k, v in endpoint.proxy_headers().items()]
        answer = b""
        try:
            self._send_raw(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), deadline)
            while b"\r\n\r\n" not in answer and len(answer) < 65536:
                data = self._recv_raw(deadline)
                if not data:
                    break
                answer += data
        except OSError as e:
            raise ConnectError(outcome.PROXY, f"the proxy did not open a tunnel: {e.strerror or e}") from None
        status = answer.partition(b"\r\n")[0].decode("latin-1", "replace").split()
        if len(status) < 2 or status[1] != "200":
            said = " ".join(status[1:]) or "nothing"
            raise ConnectError(outcome.PROXY, f"the proxy did not open a tunnel: it answered {said}")


def _connect(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    if endpoint.proxy:
        parts = urlsplit(endpoint.proxy)
        host, port = parts.hostname or "", parts.port or 8080
        what = f"the proxy {host}:{port}"
    else:
        host, port = endpoint.host, endpoint.port
        what = f"{host}:{port}"
    kind = outcome.PROXY if endpoint.proxy else outcome.CONNECT
    try:
        # gevent's: resolves and connects without holding up the other greenlets.
        cooperative: Any = socket.create_connection((host, port), timeout_s)
    except TimeoutError:
        raise ConnectError(kind, f"{what} did not answer within {timeout_s:g} s") from None
    except OSError as e:
        raise ConnectError(kind, f"{what}: {e.strerror or e}") from None
    # From here on the plain socket: the one reader polls it, no greenlet waits on it.
    native = _native_socket(cooperative)
    native.setblocking(False)
    native.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return native


def _native_socket(cooperative: Any) -> socket.socket:
    import _socket

    raw = _socket.socket(cooperative.family, cooperative.type, cooperative.proto, cooperative.detach())
    return raw  # type: ignore[return-value]
